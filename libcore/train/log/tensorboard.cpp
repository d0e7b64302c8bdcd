#include "libcore/train/log/tensorboard.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1U) != 0 ? 0x82F63B78U ^ (c >> 1) : c >> 1;
    table[i] = c;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
  // TensorFlow masks the CRC so that a CRC of data that contains CRCs remains useful (crc32c.h).
  return std::rotr(crc, 15) + 0xA282EAD8U;
}

// The part of protocol buffers that Event needs: https://protobuf.dev/programming-guides/encoding
void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
void put_key(std::string& out, int field, WireType type) {
  put_varint(out, static_cast<uint64_t>(field) << 3 | type);
}
void put_int(std::string& out, int field, int64_t value) {
  put_key(out, field, kVarint);
  put_varint(out, static_cast<uint64_t>(value));
}
template <class T>
void put_little_endian(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_double(std::string& out, int field, double value) {
  put_key(out, field, kFixed64);
  put_little_endian(out, value);
}
void put_float(std::string& out, int field, float value) {
  put_key(out, field, kFixed32);
  put_little_endian(out, value);
}
void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

// Field numbers of tensorflow/core/util/event.proto and
// tensorflow/core/framework/{summary,tensor,tensor_shape}.proto.
namespace event {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace summary {
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;
constexpr int kPluginData = 1, kPluginName = 1;
}  // namespace summary
namespace tensor {
constexpr int kDType = 1, kShape = 2, kStringValue = 8, kDim = 2, kDimSize = 1;
constexpr int64_t kString = 7;
}  // namespace tensor
namespace session {
constexpr int kStatus = 1;
constexpr int64_t kStart = 1;
}  // namespace session

std::string summary_field(std::string_view value) {
  std::string summary_message, payload;
  put_bytes(summary_message, summary::kValue, value);
  put_bytes(payload, event::kSummary, summary_message);
  return payload;
}

// A name that no earlier writer used and that sorts last: TensorBoard reads a folder's files in the order of
// their names.
std::string new_event_path(const std::string& folder) {
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  char name[400];
  std::snprintf(name, sizeof name, "events.out.tfevents.%010lld.%s.%d",
                static_cast<long long>(seconds_since_1970()), host, getpid());
  const std::string base = (std::filesystem::path(folder) / name).string();
  std::string path = base;
  for (int i = 1; file_exists(path); ++i) path = concat(base, ".", i);
  return path;
}

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes) {
  uint32_t crc = ~0U;
  for (const std::byte byte : bytes)
    crc = kCrcTable[(crc ^ static_cast<uint32_t>(byte)) & 0xFFU] ^ (crc >> 8);
  return ~crc;
}

EventWriter::EventWriter(const std::string& folder, int64_t start) : file_(nullptr, &std::fclose) {
  make_directories(folder);
  path_ = new_event_path(folder);
  file_.reset(std::fopen(path_.c_str(), "wb"));
  if (!file_) fail(ErrorKind::kIo, path_, ": cannot create: ", std::strerror(errno));
  std::string version;
  put_bytes(version, event::kFileVersion, "brain.Event:2");
  write_event(0, version);
  if (start > 0) {
    std::string status, mark;
    put_int(status, session::kStatus, session::kStart);
    put_bytes(mark, event::kSessionLog, status);
    write_event(start, mark);
  }
  flush();
}

EventWriter::~EventWriter() = default;

void EventWriter::write_event(int64_t step, std::string_view payload) {
  std::string data;
  put_double(data, event::kWallTime, seconds_since_1970());
  if (step != 0) put_int(data, event::kStep, step);
  data += payload;
  std::string length, record;
  put_little_endian(length, static_cast<uint64_t>(data.size()));
  record = length;
  put_little_endian(record, masked_crc(length));
  record += data;
  put_little_endian(record, masked_crc(data));
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size())
    fail(ErrorKind::kIo, path_, ": cannot write: ", std::strerror(errno));
}

void EventWriter::scalar(std::string_view tag, int64_t step, double value) {
  std::string message;
  put_bytes(message, summary::kTag, tag);
  put_float(message, summary::kSimpleValue, static_cast<float>(value));
  write_event(step, summary_field(message));
}

void EventWriter::text(std::string_view tag, int64_t step, std::string_view utf8) {
  std::string plugin, metadata, dim, shape, value, message;
  put_bytes(plugin, summary::kPluginName, "text");
  put_bytes(metadata, summary::kPluginData, plugin);
  put_int(dim, tensor::kDimSize, 1);
  put_bytes(shape, tensor::kDim, dim);
  put_int(value, tensor::kDType, tensor::kString);
  put_bytes(value, tensor::kShape, shape);
  put_bytes(value, tensor::kStringValue, utf8);
  put_bytes(message, summary::kTag, tag);
  put_bytes(message, summary::kTensor, value);
  put_bytes(message, summary::kMetadata, metadata);
  write_event(step, summary_field(message));
}

void EventWriter::flush() {
  if (std::fflush(file_.get()) != 0) fail(ErrorKind::kIo, path_, ": cannot write: ", std::strerror(errno));
}

}  // namespace megalith
