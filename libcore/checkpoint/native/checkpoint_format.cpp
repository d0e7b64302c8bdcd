#include "libcore/checkpoint/native/checkpoint_format.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <unordered_set>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/slice.h"
#include "libcore/hash/xxh64.h"

namespace megalith {
namespace {

constexpr int64_t kVersion = 1;
constexpr std::array kDTypes = {DType::kF32, DType::kBf16, DType::kF16, DType::kI32,
                                DType::kI64, DType::kF64,  DType::kU8};

Json numbers(const Shape& shape) {
  Json out = Json::array();
  for (int axis = 0; axis < shape.rank; ++axis) out.push_back(shape[axis]);
  return out;
}

Json block_json(const StoredBlock& block) {
  return Json::Object{{"offset", numbers(block.offset)},
                      {"shape", numbers(block.extent)},
                      {"file", block.file},
                      {"begin", block.begin},
                      {"end", block.end},
                      {"xxh64", hex64(block.checksum)}};
}

// A JSON value, and where it is, for messages: "DIR/index.json: tensor "x"".
class Reader {
 public:
  Reader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(ErrorKind::kData, where_, ": ", parts...);
  }
  const Json& member(const char* key) const {
    const Json* found = json_.find(key);
    if (!found) refuse("has no ", quote(key));
    return *found;
  }
  const std::string& text(const char* key) const {
    if (!member(key).is_string()) refuse(quote(key), " is not a string");
    return member(key).as_string();
  }
  const Json::Array& array(const char* key) const {
    if (!member(key).is_array()) refuse(quote(key), " is not an array");
    return member(key).as_array();
  }
  int64_t integer(const char* key, int64_t min_value) const {
    const Json& value = member(key);
    if (!value.is_int() || value.as_int() < min_value)
      refuse(quote(key), " holds ", value.dump(), ", wanted an integer of at least ", min_value);
    return value.as_int();
  }
  uint64_t size(const char* key) const { return static_cast<uint64_t>(integer(key, 0)); }
  uint64_t checksum(const char* key) const {
    const auto checksum = parse_hex64(text(key));
    if (!checksum) refuse(quote(key), " holds ", quote(text(key)), ", wanted 16 hexadecimal digits");
    return *checksum;
  }
  Shape shape(const char* key, int64_t min_value) const {
    const Json::Array& extents = array(key);
    if (extents.empty() || extents.size() > Shape::kMaxRank)
      refuse(quote(key), " has ", extents.size(), " axes");
    Shape out;
    out.rank = static_cast<int>(extents.size());
    for (int axis = 0; axis < out.rank; ++axis) {
      const Json& extent = extents[static_cast<size_t>(axis)];
      if (!extent.is_int() || extent.as_int() < min_value) refuse(quote(key), " holds ", extent.dump());
      out[axis] = extent.as_int();
    }
    return out;
  }

 private:
  const Json& json_;
  std::string where_;
};

// The number of bytes of a tensor. Throws kData if it overflows.
uint64_t bytes_of(const Shape& shape, DType dtype, const Reader& reader) {
  uint64_t bytes = size_of(dtype);
  for (int axis = 0; axis < shape.rank; ++axis)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(shape[axis]), &bytes) || bytes > INT64_MAX)
      reader.refuse("has more than 2^63 bytes");
  return bytes;
}

StoredBlock parse_block(const Json& json, const IndexedTensor& tensor, const std::string& where) {
  const Reader reader(json, where);
  StoredBlock block{.offset = reader.shape("offset", 0),
                    .extent = reader.shape("shape", 1),
                    .file = reader.text("file"),
                    .begin = reader.size("begin"),
                    .end = reader.size("end"),
                    .checksum = reader.checksum("xxh64")};
  if (!is_plain_name(block.file))
    reader.refuse("is said to be in ", quote(block.file), ", wanted the plain name of a file");
  if (!fits(tensor.shape, block.offset, block.extent))
    reader.refuse("a block ", block.extent, " at ", block.offset, " does not lie in ", tensor.shape);
  if (block.end < block.begin || block.end - block.begin != bytes_of(block.extent, tensor.dtype, reader))
    reader.refuse("a block ", block.extent, " of ", name_of(tensor.dtype), " occupies bytes ", block.begin,
                  " to ", block.end);
  return block;
}

DType parse_dtype(const Reader& reader) {
  const std::string& name = reader.text("dtype");
  const auto it = std::find_if(kDTypes.begin(), kDTypes.end(), [&](DType d) { return name_of(d) == name; });
  if (it == kDTypes.end()) reader.refuse("unknown type ", quote(name));
  return *it;
}

IndexedTensor parse_tensor(const Json& json, const std::string& name) {
  const Reader outer(json, name);
  const std::string where = concat(name, ": tensor ", quote(outer.text("name")));
  const Reader reader(json, where);
  IndexedTensor tensor{.name = outer.text("name"),
                       .dtype = parse_dtype(reader),
                       .shape = reader.shape("shape", 1),
                       .blocks = {}};
  bytes_of(tensor.shape, tensor.dtype, reader);
  for (const Json& block : reader.array("pieces")) tensor.blocks.push_back(parse_block(block, tensor, where));
  return tensor;
}

}  // namespace

std::string iteration_folder(int64_t iteration) {
  if (iteration == kRelease) return "release";
  char name[32];
  std::snprintf(name, sizeof name, "iter_%07lld", static_cast<long long>(iteration));
  return name;
}

std::string data_file(int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "data_%05d.safetensors", rank);
  return name;
}

namespace {

/// The axis along which the blocks begin at the most different places. A sweep along this axis is fast, since
/// few blocks are open at a time.
int most_cut_axis(const IndexedTensor& tensor) {
  int found = 0;
  size_t cuts = 0;
  for (int axis = 0; axis < tensor.shape.rank; ++axis) {
    std::unordered_set<int64_t> begins;
    for (const StoredBlock& block : tensor.blocks) begins.insert(block.offset[axis]);
    if (begins.size() > cuts) cuts = begins.size(), found = axis;
  }
  return found;
}

}  // namespace

void check_cover(const IndexedTensor& tensor, ErrorKind kind, const std::string& where) {
  int64_t covered = 0;
  const int axis = most_cut_axis(tensor);
  std::vector<const StoredBlock*> in_order;
  // blocks that reach beyond the beginning of the block that is looked at
  std::vector<const StoredBlock*> open;
  for (const StoredBlock& block : tensor.blocks) in_order.push_back(&block);
  std::stable_sort(in_order.begin(), in_order.end(), [&](const StoredBlock* a, const StoredBlock* b) {
    return a->offset[axis] < b->offset[axis];
  });
  for (const StoredBlock* const a : in_order) {
    covered += a->extent.elements();
    std::erase_if(open,
                  [&](const StoredBlock* b) { return b->offset[axis] + b->extent[axis] <= a->offset[axis]; });
    for (const StoredBlock* const b : open)
      if (overlap(a->offset, a->extent, b->offset, b->extent).extent.elements() > 0)
        fail(kind, where, ": blocks ", b->extent, " at ", b->offset, " and ", a->extent, " at ", a->offset,
             " overlap");
    if (a->extent.elements() > 0) open.push_back(a);
  }
  if (covered != tensor.shape.elements())
    fail(kind, where, ": blocks cover ", covered, " of ", tensor.shape.elements(), " elements");
}

const IndexedTensor* Index::find(std::string_view name) const {
  const auto it =
      std::lower_bound(tensors.begin(), tensors.end(), name,
                       [](const IndexedTensor& t, std::string_view wanted) { return t.name < wanted; });
  return it == tensors.end() || it->name != name ? nullptr : &*it;
}

std::string dump_index(const Index& index) {
  Json tensors = Json::array(), files = Json::array();
  for (const IndexedTensor& tensor : index.tensors) {
    Json blocks = Json::array();
    for (const StoredBlock& block : tensor.blocks) blocks.push_back(block_json(block));
    tensors.push_back(Json::Object{{"name", tensor.name},
                                   {"dtype", std::string(name_of(tensor.dtype))},
                                   {"shape", numbers(tensor.shape)},
                                   {"pieces", blocks}});
  }
  for (const IndexedFile& file : index.files)
    files.push_back(
        Json::Object{{"name", file.name}, {"bytes", file.bytes}, {"xxh64", hex64(file.checksum)}});
  std::string text = Json(Json::Object{{"format", kIndexFormat},
                                       {"version", kVersion},
                                       {"iteration", index.iteration},
                                       {"files", files},
                                       {"tensors", tensors}})
                         .dump(1);
  text.resize(text.size() - 2);  // removes the last two bytes, "\n}"
  return text + std::string(kIndexChecksumMember) + json_quote(hex64(xxh64(text))) + "\n}";
}

Index parse_index_part(std::string_view text, const std::string& name) {
  const Json json = Json::parse(text, name);
  const Reader reader(json, name);
  if (reader.text("format") != kIndexFormat) reader.refuse("is not the index of a Megalith checkpoint");
  if (const int64_t version = reader.integer("version", 0); version != kVersion)
    reader.refuse("has version ", version, "; this program reads version ", kVersion);
  check_index_checksum(text, name);
  Index index{.iteration = reader.integer("iteration", kRelease), .tensors = {}, .files = {}};
  for (const Json& tensor : reader.array("tensors")) index.tensors.push_back(parse_tensor(tensor, name));
  index.files = parse_indexed_files(json, name);
  for (size_t i = 1; i < index.tensors.size(); ++i)
    if (index.tensors[i - 1].name >= index.tensors[i].name) reader.refuse("tensors are not sorted by name");
  return index;
}

Index parse_index(std::string_view text, const std::string& name) {
  Index index = parse_index_part(text, name);
  for (const IndexedTensor& tensor : index.tensors)
    check_cover(tensor, ErrorKind::kData, concat(name, ": tensor ", quote(tensor.name)));
  return index;
}

}  // namespace megalith
