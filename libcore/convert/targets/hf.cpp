#include "libcore/convert/targets/hf.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/checkpoint/views/weights_folder.h"
#include "libcore/convert/output/output_check.h"
#include "libcore/convert/sources/generation_config.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/convert/sources/tokenizer_folder.h"
#include "libcore/convert/targets/gguf_tokenizer.h"
#include "libcore/convert/targets/model_card.h"
#include "libcore/io/files/file.h"
#include "libcore/text/saved_tokenizer.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
constexpr const char* kOwnFiles[] = {"config.json", "generation_config.json", "README.md",
                                     "loss.svg",    "model.safetensors",      "model.safetensors.index.json"};

// The tensors to write, from the bottom of the model to the top.
std::vector<OutputTensor> outputs_of(const Conversion& conversion) {
  const ModelConfig& config = conversion.source.config();
  std::vector<OutputTensor> out;
  std::set<std::string> known;
  for (const RenamedTensor& m : renamed_tensors(family_of(config).names, config)) {
    known.insert(m.ours);
    const StoredTensor* stored = m.absent ? nullptr : &conversion.file().at(m.ours);
    if (stored && stored->shape() != m.shape)
      fail(ErrorKind::kData, conversion.source.path(), ": tensor ", quote(m.ours), " is ", stored->shape(),
           ", but the options say ", m.shape);
    const DType dtype = stored ? conversion.dtype_of(*stored) : conversion.main_dtype();
    for (size_t part = 0; part < m.theirs.size(); ++part)
      out.push_back(
          {m.theirs[part].name, storage_of(dtype), m.theirs[part].shape, part_recipe(m, part), out.size()});
  }
  for (const StoredTensor& tensor : conversion.file().tensors())
    if (!known.contains(tensor.name) && !tensor.name.starts_with(kOptimizerPrefix))
      fail(ErrorKind::kData, conversion.source.path(), ": tensor ", quote(tensor.name), " has no place in a ",
           family_of(config).names.architecture);
  return out;
}

std::string shard_name(size_t shard, size_t shards) {
  if (shards == 1) return "model.safetensors";
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", shard + 1, shards);
  return name;
}

Json index_of(const OutputPlan& plan) {
  std::map<std::string, std::string> files;
  for (const OutputFile& file : plan)
    for (const OutputTensor& tensor : file.tensors) files[tensor.name] = file.name;
  Json map = Json::object();
  for (const auto& [tensor, file] : files) map.as_object().emplace_back(tensor, file);
  return Json::Object{
      {"metadata", Json::Object{{"total_parameters", elements_of(plan)}, {"total_size", bytes_of(plan)}}},
      {"weight_map", map}};
}

bool is_own_file(const std::string& name) {
  const bool shard = name.starts_with("model-") && name.ends_with(".safetensors");
  return shard || is_tokenizer_file(name) ||
         std::find(std::begin(kOwnFiles), std::end(kOwnFiles), name) != std::end(kOwnFiles);
}

void refuse_strangers(const std::string& output, const ModelSource& source) {
  if (!file_exists(output)) return;
  if (!fs::is_directory(output))
    fail(ErrorKind::kUsage, "--output ", output, " is a file; wanted a folder to write");
  if (fs::equivalent(output, source.path()))
    fail(ErrorKind::kUsage, "--output ", output, " is the model that is read; give another folder");
  for (const auto& entry : fs::directory_iterator(output))
    if (const std::string name = entry.path().filename().string(); !is_own_file(name))
      fail(ErrorKind::kUsage, "--output ", output, " holds ", quote(name),
           ", which is not part of an exported model; give a new folder");
}

// Warns if transformers 5 will not follow the tokenizer's files: it reads the tokenizer of every folder of
// some families by their own rules.
void warn_of_other_rules(const ModelConfig& config, const HfTokenizerFiles& tokenizer) {
  const auto file = tokenizer.files.find("tokenizer.json");
  const Family& family = family_of(config);
  if (file == tokenizer.files.end() || family.tokenizer_rules == nullptr) return;
  const Json json = Json::parse(file->second, file->first);
  const Json* stage = json.find("pre_tokenizer");
  if (stage && stage->is_object() && known_split(*stage) == family.tokenizer_rules) return;
  warn("the tokenizer does not split texts as ", family.title,
       "'s does, but transformers 5's AutoTokenizer takes ", family.title, "'s rules for every ",
       family.title, " model; load it with PreTrainedTokenizerFast");
}

// generation_config.json as save_pretrained() writes it. Members that the model's settings lack are derived
// from the tokenizer.
Json generation_of(const Conversion& conversion, const SpecialIds& ids) {
  Json out = conversion.generation.is_null() ? generation_config(conversion.source) : conversion.generation;
  const Json made = hf_generation_config(ids);
  for (const auto& [name, value] : made.as_object())
    if (const Json* said = out.find(name); !said || said->is_null()) out.set(name, value);
  return out;
}

HfTokenizerFiles tokenizer_of(const Conversion& conversion) {
  if (conversion.tokenizer_folder.empty()) return {};
  return hf_tokenizer_files(conversion.tokenizer_folder, conversion.source.config(), conversion.end_token());
}

}  // namespace

// Fills the files with the tensors from the bottom of the model to the top. Each file gets as many as fit,
// which is transformers' rule.
OutputPlan plan_hf(const Conversion& conversion, uint64_t max_shard) {
  OutputPlan plan(1);
  uint64_t bytes = 0;
  for (OutputTensor& tensor : outputs_of(conversion)) {
    if (bytes > 0 && bytes + tensor.bytes() > max_shard) {
      plan.emplace_back();
      bytes = 0;
    }
    bytes += tensor.bytes();
    plan.back().tensors.push_back(std::move(tensor));
  }
  for (size_t i = 0; i < plan.size(); ++i) {
    plan[i].name = shard_name(i, plan.size());
    put_in_safetensors_order(plan[i]);
  }
  return plan;
}

void export_hf(const Conversion& conversion, const std::string& output, uint64_t max_shard) {
  const ModelSource& source = conversion.source;
  refuse_strangers(output, source);
  const OutputPlan plan = plan_hf(conversion, max_shard);
  const HfTokenizerFiles tokenizer = tokenizer_of(conversion);
  if (tokenizer.files.empty())
    warn("the model has no tokenizer; the exported model takes and returns token ids only");
  warn_of_other_rules(source.config(), tokenizer);

  PlacedFiles files(memory_for(plan));
  OutputCheck check(conversion);
  AtomicDirectory folder(output);
  const std::string path = folder.path().string();
  const auto write = [&](const std::string& name, const std::string& text) {
    write_file(path + "/" + name, text);
  };
  write("config.json", hf_config(source.config(), conversion.main_dtype(), tokenizer.ids).dump(2) + "\n");
  write("generation_config.json", generation_of(conversion, tokenizer.ids).dump(2) + "\n");
  for (const auto& [name, contents] : model_card(conversion, title_of(output), elements_of(plan)))
    write(name, contents);
  for (const auto& [name, contents] : tokenizer.files) write(name, contents);
  if (plan.size() > 1) write("model.safetensors.index.json", index_of(plan).dump(2) + "\n");
  const std::vector<PlacedFile> placed = create_safetensors(plan, path, files);
  if (check.wanted()) {
    const auto written = std::make_shared<const WeightsFolder>(path, CrcCheck::kYes, &files);
    check.follow(files, [written, path](const CheckRun& run) {
      const std::string config = path + "/config.json";
      return checked_side(hugging_face_view(*written, parse_hf_config(Json::load(config), config).config),
                          run);
    });
  }
  write_tensors(conversion.file(), plan, placed, files);
  folder.sync();
  check.compare_followed(conversion.rounds());
  folder.commit();
}

}  // namespace megalith
