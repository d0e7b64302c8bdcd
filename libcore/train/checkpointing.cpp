#include "libcore/train/checkpointing.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/joint_save.h"
#include "libcore/checkpoint/native/params_io.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/checkpoint/slice.h"
#include "libcore/io/files/file.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/parallel/together.h"

namespace megalith {
namespace {

/// One of the optimizer's tensors of a parameter.
struct Moment {
  const char* name;
  View (Optimizer::*view)(const OwnedPart&) const;
};
constexpr Moment kMoments[] = {{"m.", &Optimizer::m}, {"v.", &Optimizer::v}};
constexpr Moment kMaster = {"master.", &Optimizer::master};

std::vector<Moment> moments_of(const Optimizer& optimizer) {
  std::vector<Moment> moments(std::begin(kMoments), std::end(kMoments));
  if (optimizer.has_masters()) moments.push_back(kMaster);
  return moments;
}

/// A block of a tensor of the optimizer, and the elements [first, first + extent) of its flat state.
struct StateBlock {
  Box box;  // of the whole tensor, under the parameter's name
  Shape extent;
  int64_t first = 0;  // element of OwnedPart's stretch
};

/// The blocks that make up a stretch of a parameter, less a padded vocabulary's rows beyond the tensor,
/// because a checkpoint has no padding.
std::vector<StateBlock> state_blocks(const OwnedPart& part) {
  const ParamShare share = share_of(*part.param);
  const Shape& local = part.param->local;
  if (share.extent != local && part.param->cut_axis != 0)
    fail(ErrorKind::kInternal, "parameter ", quote(part.param->name), " is padded on axis ",
         part.param->cut_axis);
  const int64_t row = local.elements() / local[0];
  const int64_t end = std::min(part.first + part.elements, share.extent[0] * row);
  std::vector<StateBlock> blocks;
  int64_t first = 0;
  for (const Overlap& block : blocks_of_range(local, part.first, end)) {
    StateBlock state{.box = share.box, .extent = block.extent, .first = first};
    for (int axis = 0; axis < local.rank; ++axis) state.box.offset[axis] += block.offset[axis];
    first += block.extent.elements();
    blocks.push_back(std::move(state));
  }
  return blocks;
}

Box moment_box(const StateBlock& block, const Moment& moment) {
  Box box = block.box;
  box.name = concat(kOptimizerPrefix, moment.name, block.box.name);
  return box;
}
/// The tensor of a moment in a checkpoint. An fp32 model's checkpoint has no masters, because its values
/// serve as these.
Box saved_box(const TensorFile& file, const StateBlock& block, const Moment& moment) {
  Box box = moment_box(block, moment);
  return moment.view == kMaster.view && !file.find(box.name) ? block.box : box;
}

View moment_view(const Optimizer& optimizer, const OwnedPart& part, const StateBlock& block,
                 const Moment& moment) {
  const int64_t elements = block.extent.elements();
  return (optimizer.*moment.view)(part).rows(block.first, block.first + elements).as_shape(block.extent);
}

/// Whether this rank writes what several hold alike, so that it is written once: the first tensor rank what
/// all of these hold whole, the first pipeline stage a tied table.
bool writes(const Param& param, const Coord& at) {
  return param.tie.empty() && (param.cut_axis != kWhole || at.tensor == 0);
}

void put_optimizer(CheckpointWriter& writer, const RankState& state) {
  const Optimizer& optimizer = *state.optimizer;
  if (!state.shape.parallel.sharded() && copy_number(state.shape, state.at) > 0) return;
  for (const OwnedPart& part : optimizer.parts()) {
    if (!writes(*part.param, state.at)) continue;
    for (const StateBlock& block : state_blocks(part))
      for (const Moment& moment : moments_of(optimizer))
        writer.put(moment_box(block, moment), moment_view(optimizer, part, block, moment));
  }
}

}  // namespace

Json TrainState::to_json() const {
  Json json(Json::Object{{"iteration", iteration},
                         {"consumed_train_samples", consumed_train},
                         {"consumed_valid_samples", consumed_valid},
                         {"schedule_samples", schedule_samples},
                         {"skipped_iterations", skipped}});
  if (best_loss) {
    json.set("best_loss", *best_loss);
    json.set("best_iteration", best_iteration);
    json.set("worse_evaluations", worse_evaluations);
  }
  return json;
}

TrainState TrainState::from_json(const Json& json) {
  TrainState state{.iteration = json["iteration"].as_int(),
                   .consumed_train = json["consumed_train_samples"].as_int(),
                   .consumed_valid = json["consumed_valid_samples"].as_int(),
                   .schedule_samples = json["schedule_samples"].as_int(),
                   .skipped = json["skipped_iterations"].as_int()};
  if (const Json* best = json.find("best_loss")) {
    state.best_loss = best->as_double();
    state.best_iteration = json["best_iteration"].as_int();
    state.worse_evaluations = json["worse_evaluations"].as_int();
  }
  return state;
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

void put_state(CheckpointWriter& writer, const RankState& state) {
  if (copy_number(state.shape, state.at) == 0)
    put_params(writer, state.params, tensor_split(state.shape, state.at));
  if (state.optimizer) put_optimizer(writer, state);
}

std::unique_ptr<CheckpointWriter> checkpoint_of(const std::string& root, const TrainState& state,
                                                Trainer& trainer, const CheckpointExtras& extras) {
  const bool on_host = trainer.stream().backend().name() == std::string_view("cpu");
  auto writer = std::make_unique<CheckpointWriter>(
      root, state.iteration, on_host ? std::nullopt : std::optional<Stream>(trainer.stream()));
  const Optimizer* const optimizer = extras.optimizer ? &trainer.optimizer() : nullptr;
  put_state(*writer, {trainer.params(), optimizer, trainer.shape(), trainer.groups().at});
  Json json = state.to_json();
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

std::string passage_of(const std::string& save, CheckpointFormat format) {
  return save + (format == CheckpointFormat::kTorch ? "/.torch" : "/.pth");
}

void save_through_ours(const std::string& folder, const TrainState& state, Trainer& trainer,
                       const CheckpointExtras& extras, const MakeOther& make) {
  Communicator& world = trainer.groups().world;
  const auto timeout = trainer.shape().parallel.peer_timeout();
  JointSave(world, timeout).save(checkpoint_of(folder, state, trainer, extras));
  do_together(world, timeout, [&](const auto&) {
    if (world.rank() != 0) return;
    make(concat(folder, "/", iteration_folder(state.iteration)));
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  });
}

void load_optimizer(const TensorFile& file, int64_t steps, Trainer& trainer) {
  const Optimizer& optimizer = trainer.optimizer();
  for (const OwnedPart& part : optimizer.parts())
    for (const StateBlock& block : state_blocks(part))
      for (const Moment& moment : moments_of(optimizer))
        load_box(file, saved_box(file, block, moment), moment_view(optimizer, part, block, moment),
                 trainer.stream());
  trainer.stream().synchronize();
  trainer.optimizer().set_steps(steps);
}

}  // namespace megalith
