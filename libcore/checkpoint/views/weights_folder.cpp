#include "libcore/checkpoint/views/weights_folder.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/json/json_names.h"

namespace megalith {
namespace {

constexpr const char* kSingles[] = {"model.safetensors", "pytorch_model.bin"};
constexpr const char* kIndex = ".index.json";

// The path of the file that leads to the weights: a weights file or an index. Empty if the folder has
// neither.
std::string entry_of(const std::string& folder) {
  for (const char* single : kSingles)
    for (const std::string& name : {std::string(single), concat(single, kIndex)})
      if (file_exists(concat(folder, "/", name))) return name;
  return {};
}

// Maps tensor names to file names, as the index lists them.
using WeightMap = std::map<std::string, std::string>;

WeightMap weight_map(const std::string& index) {
  const Json json = Json::parse(read_own_file(index), index);
  const JsonNames names(json, index);
  const Json* map = json.find("weight_map");
  if (!map || !map->is_object()) fail(ErrorKind::kData, index, ": has no object \"weight_map\"");
  WeightMap out;
  for (const auto& [tensor, file] : map->as_object()) {
    if (!file.is_string() || file.as_string().empty() || file.as_string()[0] == '.' ||
        file.as_string().find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      fail(ErrorKind::kData, index, ": tensor ", quote(tensor), " is said to be in ", file.dump(),
           ", wanted the plain name of a file in the same folder");
    out[tensor] = file.as_string();
  }
  return out;
}

std::vector<std::string> files_of(const WeightMap& map) {
  std::set<std::string> names;
  for (const auto& [tensor, file] : map) names.insert(file);
  return {names.begin(), names.end()};
}

void refuse_unlisted(const TensorFile& file, const std::string& name, const WeightMap& map) {
  for (const StoredTensor& tensor : file.tensors()) {
    const auto listed = map.find(tensor.name);
    if (listed == map.end() || listed->second != name)
      fail(ErrorKind::kData, file.path(), ": holds tensor ", quote(tensor.name), ", which the index ",
           listed == map.end() ? "does not list" : "places in " + quote(listed->second));
  }
}

struct Owned {
  StoredTensor tensor;
  size_t file;
};

bool is_safetensors(const std::string& path) {
  return path.ends_with(".safetensors");
}

}  // namespace

std::unique_ptr<TensorFile> open_weights(const std::string& path, CrcCheck crc, PendingFiles* writing) {
  if (is_safetensors(path)) return std::make_unique<SafetensorsFile>(path, writing);
  return std::make_unique<TorchTensorFile>(open_torch(path, crc, writing));
}

bool WeightsFolder::is_there(const std::string& folder) {
  return !entry_of(folder).empty();
}

WeightsFolder::WeightsFolder(std::string folder, CrcCheck crc, PendingFiles* writing)
    : folder_(std::move(folder)) {
  const std::string single = entry_of(folder_), index = folder_ + "/" + single;
  if (single.empty())
    fail(ErrorKind::kNoInput, folder_, ": holds neither ", kSingles[0], " nor ", kSingles[0], kIndex, " nor ",
         kSingles[1], " nor ", kSingles[1], kIndex);
  const bool sharded = single.ends_with(kIndex);
  const WeightMap map = sharded ? weight_map(index) : WeightMap{};
  std::vector<Owned> all;
  for (const std::string& name : sharded ? files_of(map) : std::vector<std::string>{single}) {
    if (sharded && !file_exists(folder_ + "/" + name))
      fail(ErrorKind::kData, index, ": lists ", quote(name), ", which is not in the folder");
    files_.push_back(open_weights(folder_ + "/" + name, crc, writing));
    if (sharded) refuse_unlisted(*files_.back(), name, map);
    for (const StoredTensor& tensor : files_.back()->tensors()) all.push_back({tensor, files_.size() - 1});
  }
  std::sort(all.begin(), all.end(),
            [](const Owned& a, const Owned& b) { return a.tensor.name < b.tensor.name; });
  for (Owned& owned : all) {
    tensors_.push_back(std::move(owned.tensor));
    owners_.push_back(owned.file);
  }
  for (const auto& [tensor, name] : map)
    if (!find(tensor)) fail(ErrorKind::kData, index, ": tensor ", quote(tensor), " is not in ", quote(name));
}

/// The file that holds a tensor. `tensor` must be an element of tensors_.
const TensorFile& WeightsFolder::owner_of(const StoredTensor& tensor) const {
  return *files_[owners_[static_cast<size_t>(&tensor - tensors_.data())]];
}

const std::string& WeightsFolder::file_of(const std::string& tensor) const {
  return owner_of(at(tensor)).path();
}

void WeightsFolder::read(const Box& box, View out) const {
  owner_of(at(box.name)).read(box, out);
}

ConstView WeightsFolder::mapped(const Box& box) const {
  return owner_of(at(box.name)).mapped(box);
}

}  // namespace megalith
