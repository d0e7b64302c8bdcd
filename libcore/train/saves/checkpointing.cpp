#include "libcore/train/saves/checkpointing.h"

#include <filesystem>
#include <type_traits>

#include "libcore/base/text.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json_fields.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/train/step/rank_state.h"

namespace megalith {

void check_count(int64_t count, const std::string& what) {
  if (count < 0 || count > kMostSamples) fail(ErrorKind::kData, what, " is ", count, ", wanted a count");
}

void check_state(const TrainState& state, const std::string& where) {
  TrainState checked = state;
  const auto check = [&](const char* name, const auto& count) {
    if constexpr (std::is_same_v<std::decay_t<decltype(count)>, int64_t>)
      check_count(count, concat(where, ": ", name));
  };
  checked.fields(check);
}

std::map<std::string, std::string> tokenizer_files(const TokenizerConfig& config) {
  std::map<std::string, std::string> files;
  if (!config.vocab.empty()) files["vocab.json"] = read_file(config.vocab);
  if (!config.merges.empty()) files["merges.txt"] = read_file(config.merges);
  if (config.model.empty()) return files;
  const std::filesystem::path model = config.model;
  if (!std::filesystem::is_directory(model)) {
    files[model.filename().string()] = read_file(config.model);
    return files;
  }
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                           "tokenizer.model", "chat_template.jinja"})
    if (file_exists((model / name).string())) files[name] = read_own_file((model / name).string());
  return files;
}

std::unique_ptr<CheckpointWriter> checkpoint_of(const std::string& root, const TrainState& state,
                                                Trainer& trainer, const CheckpointExtras& extras) {
  const bool on_host = trainer.stream().backend().name() == std::string_view("cpu");
  auto writer = std::make_unique<CheckpointWriter>(
      root, state.iteration, on_host ? std::nullopt : std::optional<Stream>(trainer.stream()));
  const Optimizer* const optimizer = extras.optimizer ? &trainer.optimizer() : nullptr;
  put_state(*writer, {trainer.params(), optimizer, trainer.shape(), trainer.groups().at});
  Json json = Json::object();
  add_fields(json, state);
  json.set("scheduler", extras.schedule.to_json());
  if (optimizer) json.set("optimizer_steps", optimizer->steps());
  if (trainer.loss_scale().dynamic()) json.set("loss_scale", trainer.loss_scale().to_json());
  writer->put_json(kStateFile, json);
  writer->put_json(kArgsFile, extras.args);
  writer->put_text(kLossesFile, extras.losses.to_json().dump() + "\n");
  for (const auto& [name, contents] : extras.tokenizer_files)
    writer->put_text(concat(kTokenizerFolder, "/", name), contents);
  return writer;
}

}  // namespace megalith
