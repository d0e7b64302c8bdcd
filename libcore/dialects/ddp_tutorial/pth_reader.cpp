#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <system_error>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/torch/torch_file.h"
#include "libcore/checkpoint/views/renamed_file.h"
#include "libcore/dialects/ddp_tutorial/pth_pair.h"
#include "libcore/dialects/ddp_tutorial/tutorial_names.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json_names.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

using NamedTensors = std::vector<std::pair<std::string, TorchTensor>>;

/// Tensors of several files as those of one; a part's names get its prefix.
class JoinedNames final : public TensorFile {
 public:
  struct Part {
    std::string prefix;
    std::unique_ptr<TensorFile> file;
  };
  JoinedNames(std::string path, std::vector<Part> parts) : path_(std::move(path)), parts_(std::move(parts)) {
    for (const Part& part : parts_)
      for (StoredTensor tensor : part.file->tensors()) {
        tensor.name = part.prefix + tensor.name;
        owners_[tensor.name] = &part;
        stored_.push_back(std::move(tensor));
      }
    std::sort(stored_.begin(), stored_.end(),
              [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  }

  const std::string& path() const override { return path_; }
  const std::vector<StoredTensor>& tensors() const override { return stored_; }
  void read(const Box& box, View out) const override {
    const Part& part = *owners_.at(checked(box, out).name);
    Box theirs = box;
    theirs.name.erase(0, part.prefix.size());
    part.file->read(theirs, out);
  }

 private:
  std::string path_;
  std::vector<Part> parts_;
  std::vector<StoredTensor> stored_;
  std::map<std::string, const Part*> owners_;
};

/// The tensors of a model file. DistributedDataParallel puts "module." before each name.
NamedTensors model_tensors(const TorchFile& file) {
  constexpr std::string_view kWrapped = "module.";
  NamedTensors out;
  for (const TorchLeaf& leaf : leaves_of(file.tree, file.tree.root(), file.path()))
    if (file.tree[leaf.value].kind == PickleValue::Kind::kTensor)
      out.emplace_back(leaf.name.substr(leaf.name.starts_with(kWrapped) ? kWrapped.size() : 0),
                       file.tensor(leaf.value));
  return out;
}

bool has_tutorial_names(const NamedTensors& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const auto& one) { return one.first == kTutorialEmbedding; });
}

/// The JSON that our optimizer files hold; null in a file of another program.
Json own_json(const TorchFile& file) {
  const PickleValue* own = file.tree.find(file.tree.root(), kOwnKey);
  if (!own || own->kind != PickleValue::Kind::kText) return {};
  return Json::parse(std::string(own->text()), concat(file.path(), ": ", kOwnKey));
}

/// What an optimizer file says of its parameters, in the order of their numbers.
struct OptimizerState {
  std::vector<std::string> names;
  std::map<std::string, NamedTensors> moments = {};  // by our names of the moments
  std::string other = {};                            // what it keeps and our AdamW does not; empty: nothing
  double steps = 0;                                  // as torch counts them
};

double number_of(const TorchFile& file, PickleRef ref) {
  const PickleValue& value = file.tree[ref];
  if (value.kind == PickleValue::Kind::kInt) return static_cast<double>(value.whole());
  if (value.kind == PickleValue::Kind::kFloat) return value.real();
  float number = 0;
  if (value.kind != PickleValue::Kind::kTensor || file.tensor(ref).shape().elements() != 1)
    fail(ErrorKind::kData, file.path(), ": a \"step\" is not a number");
  copy_tensor(file.tensor(ref), {0}, View{&number, DType::kF32, {1}}, {0}, {1});
  return number;
}

/// Takes what the optimizer keeps of one parameter: "state.7.exp_avg".
void take_leaf(const TorchFile& file, const TorchLeaf& leaf, OptimizerState& state) {
  const std::vector<std::string> parts = split(leaf.name, '.');
  if (parts.size() != 3 || parts[0] != "state") return;
  const auto id = parse_int(parts[1]);
  if (!id || *id < 0 || static_cast<size_t>(*id) >= state.names.size())
    fail(ErrorKind::kData, file.path(), ": state has parameter ", quote(parts[1]), ", there are ",
         state.names.size());
  const std::string& kept = parts[2];
  const auto* const moment = std::find_if(std::begin(kMoments), std::end(kMoments),
                                          [&](const auto& names) { return kept == names.second; });
  if (kept == "step")
    state.steps = number_of(file, leaf.value);
  else if (moment == std::end(kMoments))
    state.other = kept;
  else
    state.moments[moment->first].emplace_back(state.names[static_cast<size_t>(*id)], file.tensor(leaf.value));
}

OptimizerState state_of(const TorchFile& file, std::vector<std::string> names) {
  OptimizerState state{.names = std::move(names)};
  for (const TorchLeaf& leaf : leaves_of(file.tree, file.tree.root(), file.path()))
    take_leaf(file, leaf, state);
  return state;
}

/// Throws if the optimizer's state is from another save, since it then does not fit the weights.
void require_number(const TorchFile& file, const Json& own, const TrainState& state, int64_t number) {
  const Json* const said = own.find("number");
  if (said ? said->is_int() && said->as_int() == number : state.iteration - 1 == number) return;
  fail(ErrorKind::kData, file.path(), ": holds the state after step ", state.iteration - 1,
       said ? concat(", which is number ", said->dump()) : std::string(),
       ", but its name and the model next to it are number ", number, "; put the right file back");
}

/// Reads the progress of a run of ours.
OptimizerState take_own(const TorchFile& file, const Json& own, int64_t number, StartPoint& start) {
  const std::string where = concat(file.path(), ": ", kOwnKey);
  const JsonNames names_of_run(own, where);
  start.args = own["args"];
  start.args_place = concat(where, ": args");
  take_state(start, own["state"], file.path());
  if (const Json* batch = start.args.find("global_batch_size"); batch && batch->is_int())
    start.step_samples = batch->as_int();
  start.losses = LossHistory::from_json(own["losses"], concat(where, ": losses"));
  require_number(file, own, *start.state, number);
  std::vector<std::string> names;
  for (const Json& name : own["params"].as_array()) names.push_back(name.as_string());
  return state_of(file, std::move(names));
}

/// The number of parameters in the only group of an optimizer of torch's own. With several groups nothing
/// says which parameter has which number.
size_t parameters_of_group(const TorchFile& file) {
  const auto groups = file.tree.find_ref(file.tree.root(), "param_groups");
  const size_t count =
      groups && file.tree[*groups].kind == PickleValue::Kind::kList ? file.tree[*groups].items().size() : 0;
  if (count != 1)
    fail(
        ErrorKind::kData, file.path(), ": has ", count,
        " parameter groups, wanted that of AdamW(model.parameters()); move it away to begin with the weights "
        "of the model next to it");
  const PickleValue* const params = file.tree.find(file.tree[*groups].items()[0], "params");
  return params && params->kind == PickleValue::Kind::kList ? params->items().size() : 0;
}

/// Reads how far torch's own optimizer has come. Its run counted no samples: the steps are counted in steps
/// of the run that resumes.
OptimizerState take_foreign(const TorchFile& file, const ModelConfig& model, StartPoint& start) {
  std::vector<std::string> names;
  for (const PthParameter& parameter : tutorial_parameters(model)) names.push_back(parameter.name);
  if (const size_t count = parameters_of_group(file); count != names.size())
    fail(ErrorKind::kData, file.path(), ": the optimizer has ", count, " parameters, the model ",
         names.size(),
         "; --untie-embeddings-and-output-weights is for a head with weights of its own, --add-qkv-bias for "
         "biases of queries, keys and values");
  OptimizerState state = state_of(file, std::move(names));
  if (!state.other.empty())
    fail(ErrorKind::kData, file.path(), ": keeps ", quote(state.other),
         " of a parameter, wanted step, exp_avg and exp_avg_sq, the state of AdamW without amsgrad; move it "
         "away to begin with the weights of the model next to it");
  const auto steps = static_cast<int64_t>(state.steps);
  check_count(steps, concat(file.path(), ": \"step\""));
  start.state = TrainState{.iteration = steps, .consumed_train = steps, .schedule_samples = steps};
  start.step_samples = 1;
  start.optimizer_steps = steps;
  return state;
}

std::unique_ptr<TensorFile> with_our_names(const std::string& path, NamedTensors tensors,
                                           const ModelConfig& model) {
  return std::make_unique<RenamedTensorFile>(std::make_unique<TorchTensorFile>(path, std::move(tensors)),
                                             tutorial_names(), model);
}

/// The parameters and moments of GPTModel, under our names.
std::shared_ptr<const TensorFile> tutorial_tensors(const std::string& path, NamedTensors parameters,
                                                   OptimizerState state, const ModelConfig& model) {
  std::vector<JoinedNames::Part> parts;
  parts.push_back({"", with_our_names(path, std::move(parameters), model)});
  for (auto& [name, tensors] : state.moments)
    parts.push_back({concat(kOptimizerPrefix, name), with_our_names(path, std::move(tensors), model)});
  return std::make_shared<const JoinedNames>(path, std::move(parts));
}

/// The same of a model that is saved under our names.
std::shared_ptr<const TensorFile> own_tensors(const std::string& path, NamedTensors parameters,
                                              const OptimizerState& state) {
  for (const auto& [moment, tensors] : state.moments)
    for (const auto& [name, tensor] : tensors)
      parameters.emplace_back(concat(kOptimizerPrefix, moment, name), tensor);
  return std::make_shared<const TorchTensorFile>(path, std::move(parameters));
}

OptimizerState take_optimizer(const TorchFile& file, bool tutorial, int64_t number, const ModelConfig& model,
                              StartPoint& start) {
  const Json own = own_json(file);
  if (!own.is_null()) return take_own(file, own, number, start);
  if (tutorial) return take_foreign(file, model, start);
  fail(ErrorKind::kData, file.path(), ": does not say how far the run had come (key \"", kOwnKey,
       "\"); another program wrote it: move it away to begin with the weights of the model next to it");
}

[[noreturn]] void refuse_missing(const std::string& root, const std::string& model) {
  std::vector<std::string> there;
  for (const int64_t one : pair_numbers(root)) there.push_back(std::to_string(one));
  fail(ErrorKind::kNoInput, model, ": is not there; ",
       there.empty() ? concat(root, " holds no model_NNNNNN.pth") : "there are " + join(there, ", "));
}

}  // namespace

std::string pair_path(const std::string& root, const char* kind, int64_t number) {
  char name[64];
  std::snprintf(name, sizeof name, "%s_%06lld.pth", kind, static_cast<long long>(number));
  return root + "/" + name;
}

std::vector<int64_t> pair_numbers(const std::string& root) {
  constexpr std::string_view kHead = "model_", kEnd = ".pth";
  std::vector<int64_t> numbers;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kHead) || !name.ends_with(kEnd) || name.size() <= kHead.size() + kEnd.size())
      continue;
    const auto number =
        parse_int(std::string_view(name).substr(kHead.size(), name.size() - kHead.size() - kEnd.size()));
    if (number && *number >= 0) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::optional<int64_t> pair_iteration(const std::string& root, int64_t number) {
  const std::string optimizer = pair_path(root, "optimizer", number);
  if (!file_exists(optimizer)) return std::nullopt;
  try {
    const TorchFile file = open_torch(optimizer);
    const Json own = own_json(file);
    if (own.is_null()) {
      const auto groups = state_of(file, std::vector<std::string>(parameters_of_group(file)));
      return static_cast<int64_t>(groups.steps);
    }
    const JsonNames names(own, concat(optimizer, ": ", kOwnKey));
    return read_fields<TrainState>(own["state"]).iteration;
  } catch (const Error&) {
    return std::nullopt;
  }
}

Json pair_args(const std::string& root, int64_t number) {
  if (!file_exists(pair_path(root, "model", number))) refuse_missing(root, pair_path(root, "model", number));
  const std::string optimizer = pair_path(root, "optimizer", number);
  if (!file_exists(optimizer)) return {};
  const Json own = own_json(open_torch(optimizer));
  const Json* const args = own.is_null() ? nullptr : own.find("args");
  return args ? *args : Json();
}

StartPoint read_pair(const std::string& root, int64_t number, const ModelConfig& model) {
  const std::string path = pair_path(root, "model", number), optimizer = pair_path(root, "optimizer", number);
  if (!file_exists(path)) refuse_missing(root, path);
  StartPoint start;
  start.path = path;
  start.next_save = number + 1;
  NamedTensors parameters = model_tensors(open_torch(path));
  const bool tutorial = has_tutorial_names(parameters);
  if (tutorial && !fits_tutorial(model))
    fail(ErrorKind::kData, path,
         ": is a GPTModel (learned positions, LayerNorm, GELU by tanh, biases, all heads with keys of their "
         "own); the options of this run describe another model");
  OptimizerState state;
  if (file_exists(optimizer)) state = take_optimizer(open_torch(optimizer), tutorial, number, model, start);
  start.tensors = tutorial ? tutorial_tensors(path, std::move(parameters), std::move(state), model)
                           : own_tensors(path, std::move(parameters), state);
  return start;
}

}  // namespace megalith
