#include "libcore/checkpoint/torch_writer.h"

#include <algorithm>
#include <filesystem>

#include "libcore/base/crc32.h"
#include "libcore/base/error.h"

namespace megalith {
namespace {

constexpr uint64_t kAlignment = 64;       // of a member's bytes
constexpr uint32_t kFull32 = 0xFFFFFFFF;  // "see the zip64 record"
constexpr uint16_t kFull16 = 0xFFFF;
constexpr uint16_t kPaddingId = 0x4246;  // of the extra field that torch pads with
constexpr uint16_t kZip64Id = 1;
constexpr uint16_t kUtf8Names = 0x0800;
constexpr uint64_t kCrcInHeader = 14;

// Little-endian records.
class Record {
 public:
  Record& u16(uint64_t value) { return put(value, 2); }
  Record& u32(uint64_t value) { return put(value, 4); }
  Record& u64(uint64_t value) { return put(value, 8); }
  Record& text(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Record& put(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  std::string bytes_;
};

uint64_t at_most_32(uint64_t value) {
  return std::min<uint64_t>(value, kFull32);
}

// The fields that local header and directory share, from the version on.
Record& shared_fields(Record& record, uint64_t bytes, uint32_t crc, uint16_t version) {
  record.u16(version).u16(kUtf8Names).u16(0).u16(0).u16(0).u32(crc);
  return record.u32(at_most_32(bytes)).u32(at_most_32(bytes));
}

uint16_t version_for(bool zip64) {
  return zip64 ? 45 : 20;
}

const char* storage_class(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "FloatStorage";
    case DType::kBf16:
      return "BFloat16Storage";
    case DType::kF16:
      return "HalfStorage";
    case DType::kF64:
      return "DoubleStorage";
    case DType::kI32:
      return "IntStorage";
    case DType::kI64:
      return "LongStorage";
    case DType::kU8:
      return "ByteStorage";
    case DType::kI8:
      return "CharStorage";
  }
  return "";
}

const char* torch_dtype(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return "bfloat16";
    case DType::kF16:
      return "float16";
    case DType::kF64:
      return "float64";
    default:
      return "float32";
  }
}

void pickle_extents(PickleWriter& pickle, const Shape& shape, bool strides) {
  pickle.begin_tuple();
  int64_t stride = shape.elements();
  for (int axis = 0; axis < shape.rank; ++axis) {
    stride /= std::max<int64_t>(shape[axis], 1);
    pickle.integer(strides ? stride : shape[axis]);
  }
  pickle.end_tuple();
}

}  // namespace

void pickle_tensor(PickleWriter& pickle, const TensorSpec& spec, size_t key) {
  pickle.global("torch._utils", "_rebuild_tensor_v2");
  pickle.begin_tuple();
  pickle.begin_tuple();
  pickle.text("storage");
  pickle.global("torch", storage_class(spec.dtype));
  pickle.text(std::to_string(key));
  pickle.text("cpu");
  pickle.integer(spec.shape.elements());
  pickle.end_tuple();
  pickle.persistent();
  pickle.integer(0);  // offset
  pickle_extents(pickle, spec.shape, false);
  pickle_extents(pickle, spec.shape, true);
  pickle.boolean(false);                        // requires_grad
  pickle.global("collections", "OrderedDict");  // hooks
  pickle.empty_tuple();
  pickle.call();
  pickle.end_tuple();
  pickle.call();
}

void pickle_dtype(PickleWriter& pickle, DType dtype) {
  pickle.global("torch", torch_dtype(dtype));
}

TorchWriter::TorchWriter(std::string path, const std::string& pickle, std::vector<uint64_t> storages)
    : file_(path), root_(std::filesystem::path(path).stem().string()), storages_(std::move(storages)) {
  file_.write_back_early();
  put_member("data.pkl", pickle);
  put_member("byteorder", "little");
  next_storage();
}

void TorchWriter::begin_member(const std::string& name, uint64_t bytes) {
  const Member member{.name = root_ + "/" + name, .header = file_.size(), .bytes = bytes, .crc = 0};
  const bool zip64 = bytes >= kFull32;
  Record extra;
  if (zip64) extra.u16(kZip64Id).u16(16).u64(bytes).u64(bytes);
  constexpr uint64_t kFixed = 30, kPaddingHead = 4;
  const uint64_t begin = member.header + kFixed + member.name.size() + extra.bytes().size() + kPaddingHead;
  const uint64_t padding = (kAlignment - begin % kAlignment) % kAlignment;
  extra.u16(kPaddingId).u16(padding).text(std::string(padding, 'Z'));
  Record header;
  shared_fields(header.u32(0x04034B50), bytes, 0, version_for(zip64));
  header.u16(member.name.size()).u16(extra.bytes().size()).text(member.name).text(extra.bytes());
  file_.write(header.bytes());
  members_.push_back(member);
}

void TorchWriter::end_member() {
  const Member& member = members_.back();
  file_.write_at(member.header + kCrcInHeader, &member.crc, sizeof member.crc);
}

void TorchWriter::put_member(const std::string& name, std::string_view contents) {
  begin_member(name, contents.size());
  file_.write(contents);
  members_.back().crc = crc32(0, contents.data(), contents.size());
  end_member();
}

// Begins the storage at which writing stands, after those that are empty.
void TorchWriter::next_storage() {
  written_ = 0;
  for (; storage_ < storages_.size(); ++storage_) {
    begin_member("data/" + std::to_string(storage_), storages_[storage_]);
    if (storages_[storage_] > 0) return;
    end_member();
  }
  put_member("version", "3\n");
}

void TorchWriter::write(const void* data, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    if (storage_ == storages_.size())
      fail(ErrorKind::kInternal, file_.path(), ": ", bytes, " bytes beyond the last storage");
    const size_t part = std::min<uint64_t>(bytes, storages_[storage_] - written_);
    file_.write(at, part);
    members_.back().crc = crc32(members_.back().crc, at, part);
    written_ += part;
    at += part;
    bytes -= part;
    if (written_ < storages_[storage_]) continue;
    end_member();
    ++storage_;
    next_storage();
  }
}

void TorchWriter::write_directory() {
  const uint64_t begin = file_.size();
  for (const Member& member : members_) {
    const bool large = member.bytes >= kFull32, far = member.header >= kFull32;
    Record extra;
    if (large || far) extra.u16(kZip64Id).u16((large ? 16 : 0) + (far ? 8 : 0));
    if (large) extra.u64(member.bytes).u64(member.bytes);
    if (far) extra.u64(member.header);
    Record entry;
    shared_fields(entry.u32(0x02014B50).u16(version_for(true)), member.bytes, member.crc,
                  version_for(large || far));
    entry.u16(member.name.size()).u16(extra.bytes().size()).u16(0).u16(0).u16(0).u32(0);
    entry.u32(at_most_32(member.header)).text(member.name).text(extra.bytes());
    file_.write(entry.bytes());
  }
  const uint64_t end = file_.size(), count = members_.size();
  Record tail;
  if (end >= kFull32 || count >= kFull16) {
    tail.u32(0x06064B50).u64(44).u16(version_for(true)).u16(version_for(true)).u32(0).u32(0);
    tail.u64(count).u64(count).u64(end - begin).u64(begin);
    tail.u32(0x07064B50).u32(0).u64(end).u32(1);
  }
  const uint64_t short_count = std::min<uint64_t>(count, kFull16);
  tail.u32(0x06054B50).u16(0).u16(0).u16(short_count).u16(short_count);
  tail.u32(at_most_32(end - begin)).u32(at_most_32(begin)).u16(0);
  file_.write(tail.bytes());
}

void TorchWriter::finish(Durable durable) {
  if (storage_ != storages_.size())
    fail(ErrorKind::kInternal, file_.path(), ": storage ", storage_, " was not written whole");
  write_directory();
  file_.commit(durable);
}

}  // namespace megalith
