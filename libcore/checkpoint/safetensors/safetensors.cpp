#include "libcore/checkpoint/safetensors/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

/// The greatest header size that is accepted. It is enough for 250,000 tensors in one file. The safetensors
/// library accepts 100 MB, which would take 1.4 GB of memory to parse.
constexpr uint64_t kGreatestHeader = uint64_t{32} << 20;
constexpr size_t kLengthBytes = 8;

struct KnownType {
  std::string_view name;
  uint64_t bytes;
  std::optional<DType> dtype = {};
};
// The types. The safetensors library writes the tensors of later types first (in_safetensors_order).
constexpr std::array kTypes = {KnownType{"BOOL", 1},
                               KnownType{"U8", 1, DType::kU8},
                               KnownType{"I8", 1},
                               KnownType{"F8_E5M2", 1},
                               KnownType{"F8_E4M3", 1},
                               KnownType{"I16", 2},
                               KnownType{"U16", 2},
                               KnownType{"F16", 2, DType::kF16},
                               KnownType{"BF16", 2, DType::kBf16},
                               KnownType{"I32", 4, DType::kI32},
                               KnownType{"U32", 4},
                               KnownType{"F32", 4, DType::kF32},
                               KnownType{"C64", 8},
                               KnownType{"F64", 8, DType::kF64},
                               KnownType{"I64", 8, DType::kI64},
                               KnownType{"U64", 8}};

size_t type_index(DType dtype) {
  const auto it =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const KnownType& t) { return t.dtype == dtype; });
  return static_cast<size_t>(it - kTypes.begin());
}

const KnownType& known_type(const std::string& name, const std::string& where) {
  const auto it =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const KnownType& t) { return t.name == name; });
  if (it == kTypes.end()) fail(ErrorKind::kData, where, ": unknown type ", quote(name));
  return *it;
}

uint64_t natural(const Json& value, const std::string& where, const char* what) {
  if (!value.is_int() || value.as_int() < 0)
    fail(ErrorKind::kData, where, ": ", what, " holds ", value.dump(),
         ", wanted integers that are not negative");
  return static_cast<uint64_t>(value.as_int());
}

const Json& member(const Json& tensor, const char* key, const std::string& where) {
  const Json* found = tensor.find(key);
  if (!found) fail(ErrorKind::kData, where, ": has no ", quote(key));
  return *found;
}

const Json::Array& array_of(const Json& tensor, const char* key, const std::string& where) {
  const Json& value = member(tensor, key, where);
  if (!value.is_array()) fail(ErrorKind::kData, where, ": ", quote(key), " is not an array");
  return value.as_array();
}

struct Entry {
  StoredTensor tensor;
  SafetensorsFile::Range range{};  // in bytes, counted from the end of the header
};

uint64_t checked_product(uint64_t a, uint64_t b, const std::string& where) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > INT64_MAX)
    fail(ErrorKind::kData, where, ": its extents multiply to more than 2^63 bytes");
  return product;
}

Entry entry_of(const std::string& name, const Json& json, const std::string& path) {
  const std::string where = concat(path, ": tensor ", quote(name));
  if (!json.is_object()) fail(ErrorKind::kData, where, ": is not an object");
  for (const auto& [key, value] : json.as_object())
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      fail(ErrorKind::kData, where, ": unknown member ", quote(key));
  const Json& dtype = member(json, "dtype", where);
  if (!dtype.is_string()) fail(ErrorKind::kData, where, ": \"dtype\" is not a string");
  const KnownType& type = known_type(dtype.as_string(), where);
  Entry entry{
      .tensor = {.name = name, .dtype_name = std::string(type.name), .dtype = type.dtype, .extents = {}}};
  uint64_t bytes = type.bytes;
  for (const Json& extent : array_of(json, "shape", where)) {
    const uint64_t n = natural(extent, where, "\"shape\"");
    entry.tensor.extents.push_back(static_cast<int64_t>(n));
    bytes = checked_product(bytes, n, where);
  }
  const Json::Array& offsets = array_of(json, "data_offsets", where);
  if (offsets.size() != 2)
    fail(ErrorKind::kData, where, ": \"data_offsets\" holds ", offsets.size(), " numbers, wanted 2");
  entry.range = {natural(offsets[0], where, "\"data_offsets\""),
                 natural(offsets[1], where, "\"data_offsets\"")};
  if (entry.range.begin > entry.range.end || entry.range.end - entry.range.begin != bytes)
    fail(ErrorKind::kData, where, ": occupies bytes ", entry.range.begin, " to ", entry.range.end,
         " of the data, but ", type.name, " of its shape takes ", bytes);
  return entry;
}

void check_metadata(const Json& metadata, const std::string& path) {
  if (!metadata.is_object()) fail(ErrorKind::kData, path, ": \"__metadata__\" is not an object");
  for (const auto& [key, value] : metadata.as_object())
    if (!value.is_string())
      fail(ErrorKind::kData, path, ": \"__metadata__\" member ", quote(key), " is not a string");
}

// Throws kData unless the tensors fill the data: each must begin where the previous one ends.
void check_ranges(std::vector<Entry>& entries, uint64_t data_bytes, const std::string& path) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.range.begin, a.range.end) < std::pair(b.range.begin, b.range.end);
  });
  uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.range.begin != end)
      fail(ErrorKind::kData, path, ": tensor ", quote(entry.tensor.name), " begins at byte ",
           entry.range.begin, " of the data, wanted ", end, ", where the tensor before it ends");
    end = entry.range.end;
  }
  if (end != data_bytes)
    fail(ErrorKind::kData, path, ": the tensors take ", end, " bytes, the file holds ", data_bytes,
         " after its header; it was probably truncated or extended");
}

uint64_t header_bytes(const MappedFile& file) {
  if (file.size() < kLengthBytes)
    fail(ErrorKind::kData, file.path(), ": has ", file.size(), " bytes, too few for a safetensors file");
  uint64_t bytes = 0;
  std::memcpy(&bytes, file.data(), sizeof bytes);
  const uint64_t room = std::min<uint64_t>(kGreatestHeader, file.size() - kLengthBytes);
  if (bytes > room)
    fail(ErrorKind::kData, file.path(), ": declares a header of ", bytes, " bytes, but at most ", room,
         " are possible");
  if (bytes == 0 || file.text()[kLengthBytes] != '{')
    fail(ErrorKind::kData, file.path(), ": its header does not begin with '{'; is this a safetensors file?");
  return bytes;
}

}  // namespace

std::string_view safetensors_name(DType dtype) {
  return kTypes[type_index(dtype)].name;
}

SafetensorsFile::SafetensorsFile(std::string path, PendingFiles* writing)
    : file_(path), bytes_(std::move(path), writing) {
  const uint64_t header = header_bytes(file_), data = kLengthBytes + header;
  const Json json = Json::parse(file_.text().substr(kLengthBytes, header), file_.path());
  std::vector<Entry> entries;
  for (const auto& [name, value] : json.as_object()) {
    if (name == "__metadata__")
      check_metadata(value, file_.path());
    else
      entries.push_back(entry_of(name, value, file_.path()));
  }
  check_ranges(entries, file_.size() - data, file_.path());
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.tensor.name < b.tensor.name; });
  for (Entry& entry : entries) {
    tensors_.push_back(std::move(entry.tensor));
    ranges_.push_back({data + entry.range.begin, data + entry.range.end});
  }
}

SafetensorsFile::Range SafetensorsFile::range(const StoredTensor& tensor) const {
  return ranges_[static_cast<size_t>(&tensor - tensors_.data())];
}

void SafetensorsFile::read(const Box& box, View out) const {
  const StoredTensor& tensor = checked(box, out);
  const Range bytes = range(tensor);
  read_block({bytes_, bytes.begin, *tensor.dtype, box.global}, box.offset, out,
             Box::whole({}, out.shape).offset, out.shape);
}

ConstView SafetensorsFile::mapped(const Box& box) const {
  const StoredTensor& tensor = at(box.name);
  if (!tensor.dtype || tensor.shape() != box.global) return {};
  const auto* const data = file_.data() + range(tensor).begin;
  if (reinterpret_cast<uintptr_t>(data) % size_of(*tensor.dtype) != 0) return {};
  return {data, *tensor.dtype, box.global};
}

namespace {

std::string header_of(const std::vector<TensorSpec>& tensors) {
  std::string text = R"({"__metadata__":{"format":"pt"})";
  uint64_t at = 0;
  for (const TensorSpec& tensor : tensors) {
    text += concat(',', json_quote(tensor.name), R"(:{"dtype":")", safetensors_name(tensor.dtype),
                   R"(","shape":[)");
    for (int axis = 0; axis < tensor.shape.rank; ++axis) text += concat(axis ? "," : "", tensor.shape[axis]);
    text += concat(R"(],"data_offsets":[)", at, ',', at + tensor.bytes(), "]}");
    at += tensor.bytes();
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

std::vector<TensorSpec> in_safetensors_order(std::vector<TensorSpec> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorSpec& a, const TensorSpec& b) {
    return a.dtype == b.dtype ? a.name < b.name : type_index(a.dtype) > type_index(b.dtype);
  });
  return tensors;
}

SafetensorsLayout::SafetensorsLayout(const std::vector<TensorSpec>& tensors) {
  const std::string header = header_of(tensors);
  const uint64_t length = header.size();
  head.assign(reinterpret_cast<const char*>(&length), sizeof length);
  head += header;
  size = head.size();
  for (const TensorSpec& tensor : tensors) {
    offsets.push_back(size);
    size += tensor.bytes();
  }
}

SafetensorsWriter::SafetensorsWriter(std::string path, std::vector<TensorSpec> tensors)
    : file_(std::move(path)), tensors_(in_safetensors_order(std::move(tensors))), layout_(tensors_) {
  file_.write_back_early();
  file_.write(layout_.head);
  skip_complete();
}

void SafetensorsWriter::skip_complete() {
  for (; next_ < tensors_.size() && written_ == tensors_[next_].bytes(); ++next_) written_ = 0;
}

void SafetensorsWriter::write(std::string_view name, const void* data, size_t bytes) {
  if (bytes == 0) return;
  if (next_ == tensors_.size() || tensors_[next_].name != name || bytes > tensors_[next_].bytes() - written_)
    fail(ErrorKind::kInternal, file_.path(), ": ", bytes, " bytes of tensor ", quote(name), " out of order");
  file_.write(data, bytes);
  written_ += bytes;
  skip_complete();
}

void SafetensorsWriter::require_complete() const {
  if (next_ != tensors_.size())
    fail(ErrorKind::kInternal, file_.path(), ": tensor ", quote(tensors_[next_].name), " was not written");
}

void SafetensorsWriter::sync() {
  require_complete();
  file_.sync();
}

void SafetensorsWriter::finish() {
  require_complete();
  file_.commit();
}

}  // namespace megalith
