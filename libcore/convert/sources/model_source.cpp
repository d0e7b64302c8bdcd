#include "libcore/convert/sources/model_source.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/views/renamed_file.h"
#include "libcore/checkpoint/views/weights_folder.h"
#include "libcore/convert/sources/hf_config.h"
#include "libcore/convert/sources/tokenizer_folder.h"
#include "libcore/io/cache/hf_cache.h"
#include "libcore/io/files/file.h"
#include "libcore/json/small_json.h"
#include "libcore/text/tokenizer_files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  fail(ErrorKind::kData, path, ": ", what);
}

bool holds(const std::string& folder, const char* name) {
  return file_exists(folder + "/" + name);
}

constexpr const char* kAdapterFile = "adapter_config.json";  // of peft

bool is_model_or_adapter(const std::string& folder) {
  return holds(folder, "config.json") || holds(folder, kAdapterFile) || holds(folder, kIndexFile) ||
         holds(folder, kTrackerFile);
}

// The subfolders of `folder` that hold models, such as the "checkpoint-500" of Hugging Face's Trainer.
std::vector<std::string> models_below(const std::string& folder) {
  std::vector<std::string> models;
  for (const auto& entry : fs::directory_iterator(folder))
    if (is_model_or_adapter(entry.path().string())) models.push_back(entry.path().string());
  std::sort(models.begin(), models.end());
  return models;
}

constexpr const char* kGgufRemedy =
    ", which can be written but not read; give the model that it was made from";

[[noreturn]] void refuse_adapter_of_peft(const std::string& folder) {
  refuse(folder,
         concat("is an adapter of peft, not a model; give the model that it belongs to, or join both: "
                "megalith-convert MODEL --merge-adapter ",
                folder, " --to hf --output FOLDER"));
}

// Refuses a folder that is not a model. Other tools' checkpoints are recognized, so that the message says
// what the folder is, not only that it cannot be read.
[[noreturn]] void refuse_foreign_folder(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".gguf")) refuse(folder, concat("holds a GGUF file (", name, ")", kGgufRemedy));
    if (name.ends_with(".safetensors") && !holds(folder, kAdapterFile))
      refuse(folder,
             concat("holds weights (", name, ") without the config.json of their model; put it there"));
  }
  if (holds(folder, kAdapterFile)) refuse_adapter_of_peft(folder);
  if (const auto models = models_below(folder); !models.empty())
    fail(ErrorKind::kNoInput, folder, ": holds no model itself; give one of ", join(models, ", "));
  fail(ErrorKind::kNoInput, folder, ": holds no model (no ", kTrackerFile, ", ", kIndexFile,
       " or config.json)");
}

[[noreturn]] void refuse_file(const std::string& path) {
  const std::string folder = parent_or_here(path).string();
  if (path.ends_with(".gguf")) refuse(path, concat("is a GGUF file", kGgufRemedy));
  if (holds(folder, kIndexFile))
    refuse(path, concat("is one file of a checkpoint; give its folder, ", folder));
  if (holds(folder, kAdapterFile)) refuse_adapter_of_peft(folder);
  if (holds(folder, "config.json")) refuse(path, concat("is one file of a model; give its folder, ", folder));
  if (path.ends_with(".bin") || path.ends_with(".pth") || path.ends_with(".safetensors"))
    refuse(path, "is a file of weights without their configuration; give the folder that holds config.json");
  refuse(path, "is a file; give the folder that holds config.json, or a checkpoint folder");
}

ModelConfig config_of(const CheckpointReader& reader) {
  const std::string where = reader.path() + "/" + kArgsFile;
  ModelConfig config;
  from_json(config, reader.json(kArgsFile), where);
  const int64_t rows = reader.at("embedding.word_embeddings.weight").shape()[0];
  if (config.vocab_size == 0) config.vocab_size = rows;
  if (config.vocab_size != rows)
    fail(ErrorKind::kData, where, ": vocab_size is ", config.vocab_size,
         ", but the checkpoint's embedding has ", rows, " rows");
  config.finish();
  Problems problems;
  config.validate(problems);
  if (!problems.empty()) fail(ErrorKind::kData, where, ": ", problems.text("; "));
  return config;
}

std::string tokenizer_type(const Json& args) {
  const Json* type = args.find("tokenizer_type");
  return type && type->is_string() ? type->as_string() : std::string();
}

// The folder tokenizer/ of the run that holds `path`. Empty if there is none.
std::string tokenizer_of_run(const std::string& path) {
  const std::string run = run_folder_of(path);
  if (run.empty()) return {};
  std::string tokenizer = (fs::path(run) / kTokenizerFolder).string();
  return find_tokenizer(tokenizer) ? tokenizer : std::string();
}

// The folder with the tokenizer's files: the one with the weights, where users put them, or else the one
// where training put them.
std::string tokenizer_near(const std::string& path) {
  const std::string folder = fs::is_directory(path) ? path : parent_or_here(path).string();
  return find_tokenizer(folder) ? folder : tokenizer_of_run(path);
}

// A NullTokenizer for a model. Its ids are the model's vocabulary without the last id, which is the end of a
// document.
TokenizerFiles null_tokenizer(const ModelConfig& config) {
  TokenizerFiles files;
  files.type = "NullTokenizer";
  files.vocab_size = static_cast<int>(config.vocab_size) - 1;
  return files;
}

}  // namespace

void refuse_adapter_alone(const Json& args, const std::string& folder) {
  const Json* const adapter = args.find("adapter");
  if (!adapter || !adapter->is_object()) return;
  const std::string& base = (*adapter)["base"].as_string();
  const std::string wrote = parent_or_here(folder).string();  // it is the --output-dir of megalith-finetune
  const std::string found = concat("holds only an adapter, of the model ", quote(base), "; ");
  if (!holds(wrote, kAdapterFile))
    refuse(folder, concat(found, "let megalith-finetune finish, which then writes it to ", wrote,
                          ", or give that model"));
  if (adapter->find("num_virtual_tokens"))
    refuse(folder, concat(found, "a prefix cannot be joined to it; to run both: megalith-generate --model ",
                          base, " --adapter ", wrote));
  refuse(folder, concat(found, "to join both: megalith-convert ", base, " --merge-adapter ", wrote,
                        " --to hf --output FOLDER"));
}

std::string run_folder_of(const std::string& path) {
  fs::path folder = fs::absolute(path).lexically_normal();
  for (int i = 0; i < 4; ++i, folder = folder.parent_path())
    if (file_exists((folder / kTrackerFile).string())) return folder.string();
  return {};
}

bool holds_foreign_model(const std::string& folder) {
  if (!fs::is_directory(folder)) return false;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name == kAdapterFile || name.ends_with(".gguf") || name.ends_with(".safetensors")) return true;
    if (name.starts_with("checkpoint-") && is_model_or_adapter(entry.path().string())) return true;
  }
  return false;
}

ModelSource::ModelSource(const std::string& name, const SourceOptions& options) {
  const std::string path = path_or_snapshot(name);
  if (!file_exists(path))
    fail(ErrorKind::kNoInput, path, ": there is no such file or folder", hub_remedy(name));
  const std::string folder = latest_checkpoint(path).value_or(path);
  const bool ours = holds(folder, kIndexFile), found = file_exists(folder);
  if (found && !ours && is_megatron(folder))
    open_megatron(folder, options);
  else if (ours || folder != path)
    open_checkpoint(path);  // if the checkpoint is damaged, this reports what is wrong
  else if (!fs::is_directory(path))
    refuse_file(path);
  else if (holds(path, "config.json"))
    open_hugging_face(path, options);
  else
    refuse_foreign_folder(path);
}

ModelConfig shape_of_model(const std::string& name) {
  const std::string file = path_or_snapshot(name) + "/config.json";
  return file_exists(file) ? parse_hf_config(load_own_small(file), file).config : ModelSource(name).config();
}

ModelView ModelSource::view() const {
  return theirs_ ? hugging_face_view(*theirs_, config_) : our_view(*tensors_, config_);
}

void ModelSource::open_megatron(const std::string& path, SourceOptions options) {
  if (options.tokenizer.empty()) {
    options.tokenizer = tokenizer_near(path);
    options.beside = !options.tokenizer.empty();
  }
  MegatronModel model = megalith::open_megatron(path, options);
  path_ = model.path;
  config_ = model.config;
  tokenizer_folder_ = options.tokenizer;
  if (!tokenizer_folder_.empty()) tokenizer_ = find_tokenizer(tokenizer_folder_).value_or(TokenizerFiles{});
  iteration_ = model.iteration;
  training_ = std::move(model.training);
  training_.args = std::move(model.args);
  tokenizer_.eod = eod_of(training_.args);
  tensors_ = std::move(model.tensors);
  dtype_ = *tensors_->at("embedding.word_embeddings.weight").dtype;
}

void ModelSource::open_checkpoint(const std::string& path) {
  auto reader = std::make_unique<CheckpointReader>(path);
  path_ = reader->path();
  args_ = reader->json(kArgsFile);
  // must come before the adapter's tensors are taken for those of a model
  refuse_adapter_alone(args_, path_);
  config_ = config_of(*reader);
  if (reader->has_file(kLossesFile))
    losses_ = LossHistory::from_json(reader->json(kLossesFile), path_ + "/" + kLossesFile);
  const std::string type = tokenizer_type(args_);
  tokenizer_folder_ = path_ + "/" + kTokenizerFolder;
  check_tokenizer_files(path_, reader->index().files);
  tokenizer_ = find_tokenizer(tokenizer_folder_, type).value_or(TokenizerFiles{});
  if (tokenizer_.type.empty()) tokenizer_folder_ = {};
  tokenizer_.eod = eod_of(args_);
  if (type == "NullTokenizer") tokenizer_ = null_tokenizer(config_);
  dtype_ = *reader->at("embedding.word_embeddings.weight").dtype;
  iteration_ = reader->iteration();
  tensors_ = std::move(reader);
}

void ModelSource::open_hugging_face(const std::string& path, const SourceOptions& options) {
  const HfModel model = parse_hf_config(load_own_small(path + "/config.json"), path + "/config.json");
  path_ = path;
  config_ = model.config;
  tokenizer_ = find_tokenizer(path).value_or(TokenizerFiles{});
  if (!tokenizer_.type.empty()) tokenizer_folder_ = path;
  auto weights = std::make_unique<WeightsFolder>(path, options.crc, options.writing);
  if (static_cast<size_t>(config_.layers) > weights->tensors().size())
    refuse(path, concat("config.json says ", config_.layers, " layers, but there are ",
                        weights->tensors().size(), " tensors in all"));
  theirs_ = weights.get();
  tensors_ = std::make_unique<RenamedTensorFile>(std::move(weights), model.family->names, config_);
  dtype_ = *tensors_->at("embedding.word_embeddings.weight").dtype;
}

}  // namespace megalith
