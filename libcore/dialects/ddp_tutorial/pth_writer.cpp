#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/views/rows.h"
#include "libcore/dialects/ddp_tutorial/pth_file.h"
#include "libcore/dialects/ddp_tutorial/pth_pair.h"
#include "libcore/dialects/ddp_tutorial/tutorial_names.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

std::vector<PthParameter> parameters_of(const ModelConfig& model, const TensorFile& ours) {
  return fits_tutorial(model) ? tutorial_parameters(model) : own_parameters(ours);
}

/// Writes a parameter, or with a prefix ("optim.m.") what the checkpoint has for it, into the pickle.
size_t add_parameter(PthFile& file, const TensorFile& ours, const PthParameter& parameter,
                     const std::string& prefix = "") {
  const std::string name = prefix + parameter.ours;
  const StoredTensor& stored = ours.at(name);
  if (!stored.dtype)
    fail(ErrorKind::kInternal, ours.path(), ": tensor ", quote(name), " of type ", stored.dtype_name);
  const int64_t columns = parameter.form.columns();
  return file.tensor({.name = parameter.name, .dtype = *stored.dtype, .shape = parameter.shape},
                     [=, &ours](View out, int64_t) {
                       const View rows = out.as_shape({out.elements() / columns, columns});
                       for (const RowRun& run : parameter.runs)
                         read_matrix(ours, name, parameter.form,
                                     {.row = run.ours, .rows = run.rows, .columns = columns},
                                     rows.rows(run.theirs, run.theirs + run.rows));
                     });
}

/// The causal mask that each of GPTModel's layers has as a buffer: 1 where a position must not see another.
/// Fills its rows from row `first` on.
void fill_mask(View out, int64_t first) {
  const int64_t positions = out.shape[1];
  auto* const mask = static_cast<float*>(out.data);
  for (int64_t row = 0; row < out.shape[0]; ++row)
    for (int64_t column = 0; column < positions; ++column)
      mask[row * positions + column] = column > first + row ? 1.0f : 0.0f;
}
constexpr int64_t kMaskRows = 16;  // filled at one time: the mask of many positions may exceed the model

/// What GPTModel's state_dict() has besides parameters: masks, and of a tied model a head that is the
/// embedding. `embedding`: its storage.
void add_buffers(PthFile& file, const ModelConfig& model, size_t embedding) {
  std::optional<size_t> mask;
  for (int layer = 0; layer < model.layers; ++layer) {
    const std::string name = concat("trf_blocks.", layer, ".att.mask");
    file.pickle().text(name);
    if (mask)
      file.same_tensor(*mask);
    else
      mask =
          file.tensor({name, DType::kF32, {model.max_positions, model.max_positions}}, fill_mask, kMaskRows);
  }
  if (model.untied_head) return;
  file.pickle().text(head_name(tutorial_names()));
  file.same_tensor(embedding);
}

void write_model(const std::string& path, const TensorFile& ours, const ModelConfig& model) {
  PthFile file(path);
  file.pickle().begin_dict();
  size_t embedding = 0;
  for (const PthParameter& parameter : parameters_of(model, ours)) {
    file.pickle().text(parameter.name);
    const size_t storage = add_parameter(file, ours, parameter);
    if (parameter.name == kTutorialEmbedding) embedding = storage;
  }
  if (fits_tutorial(model)) add_buffers(file, model, embedding);
  file.pickle().end_dict();
  file.write();
}

/// Some of AdamW's parameters, by their numbers.
struct Group {
  size_t begin, end;
  bool decays;
};

void pickle_group(PickleWriter& pickle, const TrainConfig& train, const Group& group) {
  pickle.begin_dict();
  const auto real = [&](const char* name, double value) {
    pickle.text(name);
    pickle.real(value);
  };
  real("lr", train.lr);
  pickle.text("betas");
  pickle.begin_tuple();
  pickle.real(train.beta1);
  pickle.real(train.beta2);
  pickle.end_tuple();
  real("eps", train.adam_eps);
  real("weight_decay", group.decays ? train.weight_decay : 0);
  for (const char* name : {"amsgrad", "maximize", "capturable", "differentiable"}) {
    pickle.text(name);
    pickle.boolean(false);
  }
  for (const char* name : {"foreach", "fused"}) {
    pickle.text(name);
    pickle.none();
  }
  pickle.text("params");
  pickle.begin_list();
  for (size_t id = group.begin; id < group.end; ++id) pickle.integer(static_cast<int64_t>(id));
  pickle.end_list();
  pickle.end_dict();
}

/// AdamW's groups: with --weight-decay-all one, else what decays before what does not. Puts the parameters in
/// the order of their numbers.
std::vector<Group> make_groups(std::vector<PthParameter>& parameters, const TrainConfig& train) {
  if (train.decay_all) return {{0, parameters.size(), true}};
  const auto first = std::stable_partition(parameters.begin(), parameters.end(),
                                           [](const PthParameter& parameter) { return parameter.decays; });
  const auto decaying = static_cast<size_t>(first - parameters.begin());
  return {{0, decaying, true}, {decaying, parameters.size(), false}};
}

/// What our checkpoint holds besides tensors, the pair's number, and the parameters' names in the order of
/// their numbers.
Json about(const CheckpointReader& ours, const std::vector<PthParameter>& parameters, int64_t number) {
  Json names = Json::array();
  for (const PthParameter& parameter : parameters) names.push_back(parameter.name);
  return Json(Json::Object{{"number", number},
                           {"state", ours.json(kStateFile)},
                           {"args", ours.json(kArgsFile)},
                           {"losses", ours.json(kLossesFile)},
                           {"params", std::move(names)}});
}

void pickle_state(PthFile& file, const TensorFile& ours, const PthParameter& parameter, int64_t steps) {
  PickleWriter& pickle = file.pickle();
  pickle.begin_dict();
  pickle.text("step");
  pickle.real(static_cast<double>(steps));
  for (const auto& [own, theirs] : kMoments) {
    const std::string prefix = concat(kOptimizerPrefix, own);
    if (!ours.find(prefix + parameter.ours)) continue;
    pickle.text(theirs);
    add_parameter(file, ours, parameter, prefix);
  }
  pickle.end_dict();
}

void write_optimizer(const std::string& path, int64_t number, const CheckpointReader& ours,
                     Trainer& trainer) {
  const TrainConfig& train = trainer.shape().train;
  std::vector<PthParameter> parameters = parameters_of(trainer.shape().model, ours);
  const std::vector<Group> groups = make_groups(parameters, train);
  PthFile file(path);
  PickleWriter& pickle = file.pickle();
  pickle.begin_dict();
  pickle.text("state");
  pickle.begin_dict();
  for (size_t id = 0; id < parameters.size(); ++id) {
    // The optimizer's state may not have been saved.
    if (!ours.find(concat(kOptimizerPrefix, kMoments[0].first, parameters[id].ours))) continue;
    pickle.integer(static_cast<int64_t>(id));
    pickle_state(file, ours, parameters[id], trainer.optimizer().steps());
  }
  pickle.end_dict();
  pickle.text("param_groups");
  pickle.begin_list();
  for (const Group& group : groups) pickle_group(pickle, train, group);
  pickle.end_list();
  pickle.text(kOwnKey);
  pickle.text(about(ours, parameters, number).dump());
  pickle.end_dict();
  file.write();
}

}  // namespace

void write_pair(const std::string& root, int64_t number, const CheckpointReader& ours, Trainer& trainer) {
  const std::string model = pair_path(root, "model", number);
  // A pair that a run replaces must not have one file of each run, even if this process is killed now.
  remove_file(model);
  write_optimizer(pair_path(root, "optimizer", number), number, ours, trainer);
  write_model(model, ours, trainer.shape().model);
}

}  // namespace megalith
