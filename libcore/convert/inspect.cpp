#include "libcore/convert/inspect.h"

#include <filesystem>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/figures/text_table.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/gguf/gguf.h"
#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/checkpoint/torch/torch_file.h"
#include "libcore/checkpoint/views/weights_folder.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

// a row that is too wide continues on the next lines, with its cells together
constexpr auto kBroken = TextTable::Wide::kRowsBroken;

Json extents_of(const Shape& shape) {
  Json extents = Json::array();
  for (int axis = 0; axis < shape.rank; ++axis) extents.push_back(shape[axis]);
  return extents;
}

Json tensors_of(const TensorFile& file) {
  Json tensors = Json::array();
  for (const StoredTensor& tensor : file.tensors()) {
    int64_t elements = 1;
    Json extents = Json::array();
    for (const int64_t extent : tensor.extents) {
      elements *= extent;
      extents.push_back(extent);
    }
    tensors.push_back(Json::Object{
        {"name", tensor.name}, {"dtype", tensor.dtype_name}, {"shape", extents}, {"elements", elements}});
  }
  return tensors;
}

Json summary(const std::string& kind, const std::string& path, const TensorFile& file) {
  Json tensors = tensors_of(file);
  int64_t elements = 0;
  for (const Json& tensor : tensors.as_array()) elements += tensor["elements"].as_int();
  return Json::Object{{"kind", kind}, {"path", path}, {"elements", elements}, {"tensors", tensors}};
}

// Lists weights under the names that they have in their own file. Every byte is read once and checked, unless
// --no-crc is given.
Json inspect_weights(const std::string& path, CrcCheck crc) {
  if (fs::is_directory(path)) return summary("weights", path, WeightsFolder(path, crc));
  if (path.ends_with(".safetensors")) return summary("safetensors", path, SafetensorsFile(path));
  const TorchTensorFile file(open_torch(path, crc));
  file.verify();
  return summary("torch", path, file);
}

Json inspect_file(const std::string& path, CrcCheck crc) {
  if (path.ends_with(".gguf")) {
    const GgufFile file(path);
    Json out = summary("GGUF", path, file);
    Json config = Json::object();  // without the vocabulary, which is long
    for (const auto& [key, value] : file.metadata().as_object())
      config.set(key, value.is_array() ? Json(concat(value.as_array().size(), " values")) : value);
    out.set("config", config);
    return out;
  }
  return inspect_weights(path, crc);
}

Json inspect_model(const std::string& path, SourceOptions options) {
  options.padded = true;
  const ModelSource source(path, options);
  Json out = summary("model", source.path(), source.tensors());
  out.set("config", to_json(source.config()));
  out.set("dtype", std::string(name_of(source.dtype())));
  out.set("tokenizer", source.tokenizer().type);
  if (source.iteration() != kRelease) out.set("iteration", source.iteration());
  return out;
}

std::string text_of(const Json& value) {
  return printable(value.is_string() ? value.as_string() : value.dump());
}

}  // namespace

std::string table_of(const OutputPlan& plan, size_t columns) {
  TextTable table{.rows = {{"tensor", "from", "shape", "type", "bytes", "how"}},
                  .texts = {0, 1, 2, 3, 5},
                  .wide = kBroken};
  std::string text;
  for (const OutputFile& file : plan) {
    table.rows.resize(1);
    for (const OutputTensor& t : file.tensors)
      table.rows.push_back({printable(t.name), t.recipe.source.empty() ? "-" : printable(t.recipe.source),
                            concat(t.shape), std::string(name_of(t.storage)),
                            format_count(static_cast<int64_t>(t.bytes())), t.recipe.how});
    text += printable(file.name) + "\n" + table_text(table, columns);
  }
  return text + concat(format_count(elements_of(plan)), " elements, ",
                       format_count(static_cast<int64_t>(bytes_of(plan))), " bytes\n");
}

Json json_of(const OutputPlan& plan) {
  Json files = Json::array();
  for (const OutputFile& file : plan) {
    Json tensors = Json::array();
    for (const OutputTensor& t : file.tensors)
      tensors.push_back(Json::Object{{"name", t.name},
                                     {"from", t.recipe.source},
                                     {"shape", extents_of(t.shape)},
                                     {"dtype", std::string(name_of(t.storage))},
                                     {"bytes", t.bytes()},
                                     {"how", t.recipe.how}});
    files.push_back(Json::Object{{"file", file.name}, {"tensors", tensors}});
  }
  return Json::Object{{"elements", elements_of(plan)}, {"bytes", bytes_of(plan)}, {"files", files}};
}

Json inspect(const std::string& path, const SourceOptions& options) {
  if (file_exists(path) && !fs::is_directory(path)) return inspect_file(path, options.crc);
  const bool bare = WeightsFolder::is_there(path) && !file_exists(path + "/config.json") &&
                    !file_exists(path + "/adapter_config.json");
  return bare ? inspect_weights(path, options.crc) : inspect_model(path, options);
}

std::string inspect_text(const Json& inspected, size_t columns) {
  TextTable facts{.rows = {}, .texts = {0, 1}, .wide = kBroken};
  TextTable tensors{.rows = {{"tensor", "shape", "type", "elements"}}, .texts = {0, 1, 2}, .wide = kBroken};
  for (const auto& [name, value] : inspected.as_object()) {
    if (name == "tensors" || name == "config") continue;
    facts.rows.push_back({printable(name), text_of(value)});
  }
  if (const Json* config = inspected.find("config"))
    for (const auto& [name, value] : config->as_object())
      facts.rows.push_back({printable(name), text_of(value)});
  for (const Json& tensor : inspected["tensors"].as_array())
    tensors.rows.push_back({printable(tensor["name"].as_string()), tensor["shape"].dump(),
                            tensor["dtype"].as_string(), format_count(tensor["elements"].as_int())});
  return table_text(facts, columns) + "\n" + table_text(tensors, columns);
}

}  // namespace megalith
