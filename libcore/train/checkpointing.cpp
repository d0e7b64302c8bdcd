#include "libcore/train/checkpointing.h"

#include <filesystem>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/params_io.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/io/file.h"

namespace megalith {
namespace {

/// One of the optimizer's tensors of a parameter.
struct Moment {
  const char* name;
  View (Optimizer::*view)(const Param&) const;
};
constexpr Moment kMoments[] = {{"m.", &Optimizer::m}, {"v.", &Optimizer::v}};
constexpr Moment kMaster = {"master.", &Optimizer::master};

std::vector<Moment> moments_of(const Trainer& trainer) {
  std::vector<Moment> moments(std::begin(kMoments), std::end(kMoments));
  if (trainer.store().values().dtype != DType::kF32) moments.push_back(kMaster);
  return moments;
}

Box optimizer_box(const ParamShare& share, const Moment& moment) {
  Box box = share.box;
  box.name = concat(kOptimizerPrefix, moment.name, share.box.name);
  return box;
}

// What has a state of its own: trained, and not the second name of another parameter.
bool has_state(const Param& param) {
  return param.trainable && param.tie.empty();
}

// The true rows of a parameter-shaped tensor: a padded vocabulary's end is not saved. (Only whole parameters
// and vocabularies, whose axis is the outermost, come here until there are tensor groups.)
View true_part(View whole, const ParamShare& share) {
  return whole.shape == share.extent ? whole : whole.rows(0, share.extent[0]);
}

Json schedule_json(const LrSchedule& schedule) {
  return Json(Json::Object{{"max_lr", schedule.max},
                           {"min_lr", schedule.min},
                           {"lr_decay_style", enum_name(schedule.decay)},
                           {"lr_warmup_steps", schedule.warmup},
                           {"lr_decay_steps", schedule.decay_end}});
}

}  // namespace

Json TrainState::to_json() const {
  return Json(Json::Object{{"iteration", iteration},
                           {"consumed_train_samples", consumed_train},
                           {"consumed_valid_samples", consumed_valid},
                           {"schedule_samples", schedule_samples},
                           {"skipped_iterations", skipped}});
}

TrainState TrainState::from_json(const Json& json) {
  return {.iteration = json["iteration"].as_int(),
          .consumed_train = json["consumed_train_samples"].as_int(),
          .consumed_valid = json["consumed_valid_samples"].as_int(),
          .schedule_samples = json["schedule_samples"].as_int(),
          .skipped = json["skipped_iterations"].as_int()};
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
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "tokenizer.model"})
    if (file_exists((model / name).string())) files[name] = read_file((model / name).string());
  return files;
}

std::string save_checkpoint(const std::string& root, const TrainState& state, Trainer& trainer,
                            const CheckpointExtras& extras) {
  CheckpointWriter writer(root, state.iteration);
  for (const Param& param : trainer.params().all()) {
    if (!param.tie.empty()) continue;
    const ParamShare share = share_of(param);
    writer.put(share.box, true_part(param.value, share));
    if (!extras.optimizer || !has_state(param)) continue;
    for (const Moment& moment : moments_of(trainer))
      writer.put(optimizer_box(share, moment), true_part((trainer.optimizer().*moment.view)(param), share));
  }
  Json json = state.to_json();
  json.set("scheduler", schedule_json(extras.schedule));
  if (extras.optimizer) json.set("optimizer_steps", trainer.optimizer().steps());
  writer.put_json(kStateFile, json);
  writer.put_json(kArgsFile, extras.args);
  writer.put_text(kLossesFile, extras.losses.to_json().dump() + "\n");
  for (const auto& [name, contents] : extras.tokenizer_files)
    writer.put_text(concat(kTokenizerFolder, "/", name), contents);
  writer.commit(*make_self_comm(), trainer.stream());
  return concat(root, "/", iteration_folder(state.iteration));
}

void load_optimizer(const CheckpointReader& reader, Trainer& trainer) {
  const Json state = reader.json(kStateFile);
  const Json* steps = state.find("optimizer_steps");
  if (!steps)
    fail(ErrorKind::kData, reader.path(),
         ": holds no optimizer state; give --no-load-optim to go on with fresh moments");
  for (const Param& param : trainer.params().all()) {
    if (!has_state(param)) continue;
    const ParamShare share = share_of(param);
    std::vector<float> host(static_cast<size_t>(share.extent.elements()));
    for (const Moment& moment : moments_of(trainer)) {
      reader.read(optimizer_box(share, moment), View{host.data(), DType::kF32, share.extent});
      trainer.stream().from_host(true_part((trainer.optimizer().*moment.view)(param), share), host.data());
    }
  }
  trainer.stream().synchronize();
  trainer.optimizer().set_steps(steps->as_int());
}

std::optional<SavedArgs> saved_args(const std::string& root) {
  const auto folder = latest_checkpoint(root);
  if (!folder) return std::nullopt;
  return SavedArgs{.args = CheckpointReader(*folder).json(kArgsFile), .folder = *folder};
}

LrSchedule saved_schedule(const CheckpointReader& reader) {
  const Json state = reader.json(kStateFile);
  const Json& saved = state["scheduler"];
  LrSchedule schedule{.max = saved["max_lr"].as_double(),
                      .min = saved["min_lr"].as_double(),
                      .warmup = saved["lr_warmup_steps"].as_double(),
                      .decay_end = saved["lr_decay_steps"].as_int()};
  const std::string& style = saved["lr_decay_style"].as_string();
  for (const auto& [name, value] : enum_names(LrDecay{}))
    if (style == name) {
      schedule.decay = value;
      return schedule;
    }
  fail(ErrorKind::kData, reader.path(), "/", kStateFile, ": unknown lr_decay_style ", quote(style));
}

TrainState saved_state(const CheckpointReader& reader) {
  return TrainState::from_json(reader.json(kStateFile));
}

}  // namespace megalith
