#include "libcore/checkpoint/gguf/gguf.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/elements.h"

namespace megalith {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr uint32_t kVersion = 3;
constexpr uint64_t kAlignment = 32;
constexpr uint32_t kMaxAxes = 4;  // ggml's limit
constexpr const char* kAlignmentKey = "general.alignment";

// Types of metadata values.
enum ValueType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64
};

uint64_t aligned(uint64_t bytes, uint64_t alignment = kAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& out, std::string_view text) {
  append(out, static_cast<uint64_t>(text.size()));
  out += text;
}

DType plain_type(GgufType type) {
  return type == GgufType::kF16 ? DType::kF16 : type == GgufType::kBf16 ? DType::kBf16 : DType::kF32;
}

// Reads a file's bytes from front to back. Throws kData for a read beyond the end.
class Cursor {
 public:
  explicit Cursor(const MappedFile& file) : file_(file) {}

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorKind::kData, file_.path(), ": ", parts...);
  }
  std::string_view take(uint64_t bytes) {
    if (bytes > left())
      refuse("ends within its header, at byte ", file_.size(), "; it was probably truncated");
    at_ += bytes;
    return file_.text().substr(at_ - bytes, bytes);
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() {
    const std::string_view bytes = take(number<uint64_t>());
    return std::string(bytes);
  }
  uint64_t left() const { return file_.size() - at_; }
  uint64_t at() const { return at_; }

 private:
  const MappedFile& file_;
  uint64_t at_ = 0;
};

Json value_of(Cursor& in, uint32_t type, int depth);

// Reads an array. Every element takes at least one byte, so a count larger than the rest of the file is
// refused before memory is allocated.
Json array_of(Cursor& in, int depth) {
  const auto type = in.number<uint32_t>();
  const auto size = in.number<uint64_t>();
  if (depth > 1) in.refuse("arrays are nested more than twice");
  if (size > in.left())
    in.refuse("an array declares ", size, " elements, but ", in.left(), " bytes are left");
  Json array = Json::array();
  for (uint64_t i = 0; i < size; ++i) array.push_back(value_of(in, type, depth + 1));
  return array;
}

Json value_of(Cursor& in, uint32_t type, int depth) {
  switch (type) {
    case kUint8:
      return int64_t{in.number<uint8_t>()};
    case kInt8:
      return int64_t{in.number<int8_t>()};
    case kUint16:
      return int64_t{in.number<uint16_t>()};
    case kInt16:
      return int64_t{in.number<int16_t>()};
    case kUint32:
      return int64_t{in.number<uint32_t>()};
    case kInt32:
      return int64_t{in.number<int32_t>()};
    case kFloat32:
      return double{in.number<float>()};
    case kBool:
      return in.number<uint8_t>() != 0;
    case kString:
      return in.text();
    case kArray:
      return array_of(in, depth);
    case kUint64:
      return in.number<uint64_t>();
    case kInt64:
      return in.number<int64_t>();
    case kFloat64:
      return in.number<double>();
    default:
      in.refuse("metadata of unknown type ", type);
  }
}

uint64_t alignment_of(const Cursor& in, const Json& metadata) {
  const Json* value = metadata.find(kAlignmentKey);
  if (!value) return kAlignment;
  if (!value->is_int() || value->as_int() < 1 || value->as_int() > (1 << 20) ||
      !std::has_single_bit(static_cast<uint64_t>(value->as_int())))
    in.refuse(quote(kAlignmentKey), " is ", value->dump(), ", wanted a power of two");
  return static_cast<uint64_t>(value->as_int());
}

struct Entry {
  StoredTensor tensor;
  GgufType type;
  uint64_t offset, bytes;
};

Entry entry_of(Cursor& in) {
  Entry entry{.tensor = {.name = in.text(), .dtype_name = {}, .dtype = {}, .extents = {}},
              .type = {},
              .offset = 0,
              .bytes = 0};
  const std::string name = quote(entry.tensor.name);
  const auto axes = in.number<uint32_t>();
  if (axes > kMaxAxes) in.refuse("tensor ", name, " has ", axes, " axes; at most ", kMaxAxes, " are allowed");
  int64_t elements = 1;
  for (uint32_t axis = 0; axis < axes; ++axis) {
    const auto extent = in.number<uint64_t>();
    if (extent > INT64_MAX / 8 || __builtin_mul_overflow(elements, static_cast<int64_t>(extent), &elements) ||
        elements > INT64_MAX / 8)
      in.refuse("the extents of tensor ", name, " multiply to more than 2^63 bytes");
    entry.tensor.extents.insert(entry.tensor.extents.begin(), static_cast<int64_t>(extent));
  }
  const auto type = in.number<uint32_t>();
  constexpr std::array kKnown = {GgufType::kF32, GgufType::kF16, GgufType::kQ8, GgufType::kBf16};
  const auto known = std::find(kKnown.begin(), kKnown.end(), static_cast<GgufType>(type));
  if (known == kKnown.end())
    in.refuse("tensor ", name, " has ggml's type ", type, "; F32, F16, BF16 and Q8_0 can be read");
  entry.type = *known;
  entry.tensor.dtype_name = name_of(entry.type);
  entry.tensor.dtype = plain_type(entry.type);
  if (entry.type == GgufType::kQ8 &&
      (entry.tensor.extents.empty() || entry.tensor.extents.back() % kQ8Block != 0))
    in.refuse("tensor ", name, " is Q8_0, but its rows are not whole blocks of ", kQ8Block);
  entry.offset = in.number<uint64_t>();
  entry.bytes = gguf_bytes(entry.type, elements);
  return entry;
}

void check_places(const Cursor& in, std::vector<Entry>& entries, uint64_t room, uint64_t alignment) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.offset < b.offset; });
  uint64_t end = 0;
  for (const Entry& entry : entries) {
    const std::string name = quote(entry.tensor.name);
    if (entry.offset % alignment != 0 || entry.offset < end)
      in.refuse("tensor ", name, " begins at byte ", entry.offset,
                " of the data, where it overlaps another one or is not aligned");
    if (entry.offset != end)
      in.refuse("tensor ", name, " begins at byte ", entry.offset,
                " of the data, but the one before ends at ", end, ": a declared shape or offset is wrong");
    if (entry.bytes > room || entry.offset > room - entry.bytes)
      in.refuse("tensor ", name, " ends beyond the file; it was probably truncated");
    end = aligned(entry.offset + entry.bytes, alignment);
  }
  if (end < room)
    in.refuse("has ", room - end,
              " bytes after its tensors: a declared shape is wrong, or the file is not whole");
}

void check_names(const Cursor& in, const std::vector<Entry>& sorted) {
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i].tensor.name == sorted[i - 1].tensor.name)
      in.refuse("tensor ", quote(sorted[i].tensor.name), " appears twice");
}

float half_to_float(const std::byte* from) {
  float value = 0;
  convert_elements(&value, DType::kF32, from, DType::kF16, 1);
  return value;
}

}  // namespace

uint64_t gguf_bytes(GgufType type, int64_t elements) {
  if (type == GgufType::kQ8) return static_cast<uint64_t>(elements / kQ8Block) * kQ8BlockBytes;
  return static_cast<uint64_t>(elements) * size_of(plain_type(type));
}

std::string_view name_of(GgufType type) {
  switch (type) {
    case GgufType::kF32:
      return "F32";
    case GgufType::kF16:
      return "F16";
    case GgufType::kBf16:
      return "BF16";
    case GgufType::kQ8:
      return "Q8_0";
  }
  return "";
}

constexpr float kMaxHalf = 65504;  // the largest number of fp16

bool quantize_q8_0(const float* values, int64_t n, std::byte* out) {
  for (int64_t block = 0; block < n / kQ8Block; ++block, values += kQ8Block, out += kQ8BlockBytes) {
    float max_abs = 0;
    bool finite = true;
    for (int64_t i = 0; i < kQ8Block; ++i) {
      max_abs = std::max(max_abs, std::fabs(values[i]));
      finite &= std::isfinite(values[i]);
    }
    const float scale = max_abs / 127, inverse = scale == 0 ? 0 : 1 / scale;
    if (!finite || scale > kMaxHalf) return false;
    convert_elements(out, DType::kF16, &scale, DType::kF32, 1);
    auto* quantized = reinterpret_cast<int8_t*>(out + sizeof(uint16_t));
    for (int64_t i = 0; i < kQ8Block; ++i)
      quantized[i] = static_cast<int8_t>(std::round(values[i] * inverse));
  }
  return true;
}

void GgufMetadata::begin(std::string_view key, uint32_t type) {
  append_text(bytes_, key);
  append(bytes_, type);
  ++count_;
}
void GgufMetadata::begin_array(std::string_view key, uint32_t type, size_t size) {
  begin(key, kArray);
  append(bytes_, type);
  append(bytes_, static_cast<uint64_t>(size));
}
void GgufMetadata::text(std::string_view key, std::string_view value) {
  begin(key, kString);
  append_text(bytes_, value);
}
void GgufMetadata::u32(std::string_view key, int64_t value) {
  begin(key, kUint32);
  append(bytes_, static_cast<uint32_t>(value));
}
void GgufMetadata::f32(std::string_view key, double value) {
  begin(key, kFloat32);
  append(bytes_, static_cast<float>(value));
}
void GgufMetadata::boolean(std::string_view key, bool value) {
  begin(key, kBool);
  append(bytes_, static_cast<uint8_t>(value));
}
void GgufMetadata::texts(std::string_view key, std::span<const std::string> values) {
  begin_array(key, kString, values.size());
  for (const std::string& value : values) append_text(bytes_, value);
}
void GgufMetadata::floats(std::string_view key, std::span<const float> values) {
  begin_array(key, kFloat32, values.size());
  for (const float value : values) append(bytes_, value);
}
void GgufMetadata::integers(std::string_view key, std::span<const int32_t> values) {
  begin_array(key, kInt32, values.size());
  for (const int32_t value : values) append(bytes_, value);
}

GgufLayout::GgufLayout(const GgufMetadata& metadata, const std::vector<GgufTensor>& tensors) : head(kMagic) {
  append(head, kVersion);
  append(head, static_cast<uint64_t>(tensors.size()));
  append(head, metadata.size());
  head += metadata.bytes();
  uint64_t at = 0;
  for (const GgufTensor& tensor : tensors) {
    append_text(head, tensor.name);
    append(head, static_cast<uint32_t>(tensor.shape.rank));
    for (int axis = tensor.shape.rank - 1; axis >= 0; --axis)
      append(head, static_cast<uint64_t>(tensor.shape[axis]));
    append(head, static_cast<uint32_t>(tensor.type));
    append(head, at);
    offsets.push_back(at);
    at += aligned(tensor.bytes());
  }
  head.resize(aligned(head.size()));
  for (uint64_t& offset : offsets) offset += head.size();
  size = head.size() + at;
}

GgufFile::GgufFile(std::string path) : file_(path), bytes_(std::move(path)) {
  Cursor in(file_);
  if (!file_.text().starts_with(kMagic)) in.refuse("does not begin with \"GGUF\"");
  in.take(kMagic.size());
  if (const auto version = in.number<uint32_t>(); version != kVersion)
    in.refuse("has GGUF version ", version, "; version ", kVersion, " can be read");
  const auto tensors = in.number<uint64_t>(), values = in.number<uint64_t>();
  if (tensors > in.left() || values > in.left())
    in.refuse("declares ", tensors, " tensors and ", values, " metadata, more than its ", file_.size(),
              " bytes");
  for (uint64_t i = 0; i < values; ++i) {
    std::string key = in.text();
    const auto type = in.number<uint32_t>();
    metadata_.as_object().emplace_back(std::move(key), value_of(in, type, 0));
  }
  std::vector<Entry> entries;
  for (uint64_t i = 0; i < tensors; ++i) entries.push_back(entry_of(in));
  const uint64_t alignment = alignment_of(in, metadata_), data = aligned(in.at(), alignment);
  check_places(in, entries, file_.size() - std::min<uint64_t>(data, file_.size()), alignment);
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.tensor.name < b.tensor.name; });
  check_names(in, entries);
  for (Entry& entry : entries) {
    spans_.push_back({entry.type, data + entry.offset});
    tensors_.push_back(std::move(entry.tensor));
  }
}

void GgufFile::read(const Box& box, View out) const {
  const StoredTensor& tensor = checked(box, out);
  const TensorSpan span = spans_[static_cast<size_t>(&tensor - tensors_.data())];
  if (span.type == GgufType::kQ8) return read_quantized(span.begin, box, out);
  read_block({bytes_, span.begin, plain_type(span.type), box.global}, box.offset, out,
             Box::whole({}, out.shape).offset, out.shape);
}

// Reads a block of a Q8_0 tensor row by row, since a row consists of whole Q8_0 blocks. A block without
// elements is skipped first: its tensor may declare any number of columns.
void GgufFile::read_quantized(uint64_t begin, const Box& box, View out) const {
  if (out.elements() == 0) return;
  const int last = box.global.rank - 1;
  const int64_t columns = box.global[last], blocks = columns / kQ8Block;
  std::vector<float> row(static_cast<size_t>(columns));
  Shape at = box.offset, extent = out.shape;
  at[last] = 0;
  extent[last] = 1;
  auto* to = out.as<std::byte>();
  for (int64_t i = 0; i < extent.elements(); ++i) {
    int64_t number = 0, rest = i, step = 1;
    for (int axis = last - 1; axis >= 0; --axis) {
      number += (at[axis] + rest % extent[axis]) * step;
      rest /= extent[axis];
      step *= box.global[axis];
    }
    const std::byte* from = file_.data() + begin + static_cast<uint64_t>(number * blocks) * kQ8BlockBytes;
    for (int64_t block = 0; block < blocks; ++block, from += kQ8BlockBytes) {
      const float scale = half_to_float(from);
      const auto* quantized = reinterpret_cast<const int8_t*>(from + sizeof(uint16_t));
      for (int64_t j = 0; j < kQ8Block; ++j)
        row[static_cast<size_t>(block * kQ8Block + j)] = scale * static_cast<float>(quantized[j]);
    }
    convert_elements(to, out.dtype, row.data() + box.offset[last], DType::kF32, out.shape[last]);
    to += static_cast<size_t>(out.shape[last]) * size_of(out.dtype);
  }
  file_.forget(begin, gguf_bytes(GgufType::kQ8, box.global.elements()));
}

}  // namespace megalith
