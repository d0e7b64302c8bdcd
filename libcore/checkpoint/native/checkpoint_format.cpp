#include "libcore/checkpoint/native/checkpoint_format.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <unordered_set>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/slice.h"
#include "libcore/hash/xxh64.h"
#include "libcore/json/json_names.h"

namespace megalith {
namespace {

constexpr int64_t kVersion = 1;
constexpr std::array kDTypes = {DType::kF32, DType::kBf16, DType::kF16, DType::kI32,
                                DType::kI64, DType::kF64,  DType::kU8};

// The number of bytes of a tensor. `where` begins the message if it overflows (kData).
uint64_t bytes_of(const Shape& shape, DType dtype, const std::string& where) {
  uint64_t bytes = size_of(dtype);
  for (int axis = 0; axis < shape.rank; ++axis)
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(shape[axis]), &bytes) || bytes > INT64_MAX)
      fail(ErrorKind::kData, where, ": has more than 2^63 bytes");
  return bytes;
}

void check_block(const StoredBlock& block, const IndexedTensor& tensor, const std::string& where) {
  if (!is_plain_name(block.file))
    fail(ErrorKind::kData, where, ": is said to be in ", quote(block.file),
         ", wanted the plain name of a file");
  if (!fits(tensor.shape, block.offset, block.extent))
    fail(ErrorKind::kData, where, ": a block ", block.extent, " at ", block.offset, " does not lie in ",
         tensor.shape);
  if (block.end < block.begin || block.end - block.begin != bytes_of(block.extent, tensor.dtype, where))
    fail(ErrorKind::kData, where, ": a block ", block.extent, " of ", name_of(tensor.dtype),
         " occupies bytes ", block.begin, " to ", block.end);
}

std::string place_of(const IndexedTensor& tensor, const std::string& index) {
  return concat(index, ": tensor ", quote(tensor.name));
}

void check_tensor(const IndexedTensor& tensor, const std::string& index) {
  const std::string where = place_of(tensor, index);
  bytes_of(tensor.shape, tensor.dtype, where);
  for (const StoredBlock& block : tensor.blocks) check_block(block, tensor, where);
}

}  // namespace

Json SavedShape::to_json() const {
  Json out = Json::array();
  for (int axis = 0; axis < shape.rank; ++axis) out.push_back(shape[axis]);
  return out;
}

void SavedShape::take(const Json& json) {
  const Json::Array& extents = json.as_array();
  if (extents.empty() || extents.size() > Shape::kMaxRank)
    fail(ErrorKind::kData, JsonNames::of(json), " has ", extents.size(), " axes, wanted 1 to ",
         Shape::kMaxRank);
  shape.rank = static_cast<int>(extents.size());
  for (int axis = 0; axis < shape.rank; ++axis) {
    const Json& extent = extents[static_cast<size_t>(axis)];
    if (extent.as_int() < least)
      fail(ErrorKind::kData, JsonNames::of(json), " holds ", extent.as_int(), ", wanted at least ", least);
    shape[axis] = extent.as_int();
  }
}

Json SavedDType::to_json() const {
  return std::string(name_of(dtype));
}

void SavedDType::take(const Json& json) {
  const std::string& name = json.as_string();
  const auto it = std::find_if(kDTypes.begin(), kDTypes.end(), [&](DType d) { return name_of(d) == name; });
  if (it == kDTypes.end()) fail(ErrorKind::kData, JsonNames::of(json), " is an unknown type: ", quote(name));
  dtype = *it;
}

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
  Json json = Json::Object{{"format", kIndexFormat}, {"version", kVersion}};
  add_fields(json, index);
  std::string text = json.dump(1);
  text.resize(text.size() - 2);  // removes the last two bytes, "\n}"
  return text + std::string(kIndexChecksumMember) + json_quote(hex64(xxh64(text))) + "\n}";
}

Index parse_index_part(std::string_view text, const std::string& name) {
  const Json json = Json::parse(text, name);
  const JsonNames names(json, name);
  if (json["format"].as_string() != kIndexFormat)
    fail(ErrorKind::kData, name, ": is not the index of a Megalith checkpoint");
  if (const int64_t version = json["version"].as_int(); version != kVersion)
    fail(ErrorKind::kData, name, ": has version ", version, "; this program reads version ", kVersion);
  check_index_checksum(text, name);
  auto index = read_fields<Index>(json);
  if (index.iteration < kRelease)
    fail(ErrorKind::kData, name, ": the iteration is ", index.iteration, ", wanted at least ", kRelease);
  check_indexed_files(index.files, name);
  for (const IndexedTensor& tensor : index.tensors) check_tensor(tensor, name);
  for (size_t i = 1; i < index.tensors.size(); ++i)
    if (index.tensors[i - 1].name >= index.tensors[i].name)
      fail(ErrorKind::kData, name, ": tensors are not sorted by name");
  return index;
}

Index parse_index(std::string_view text, const std::string& name) {
  Index index = parse_index_part(text, name);
  for (const IndexedTensor& tensor : index.tensors)
    check_cover(tensor, ErrorKind::kData, place_of(tensor, name));
  return index;
}

}  // namespace megalith
