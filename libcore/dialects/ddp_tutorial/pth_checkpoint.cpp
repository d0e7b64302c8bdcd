// Checkpoints in the form of the PyTorch DDP tutorial: ROOT/model_NNNNNN.pth, a dict of the parameters under
// our names, and ROOT/optimizer_NNNNNN.pth, the contents of torch.optim.AdamW.state_dict() (matrices in the
// first group, vectors, which do not decay, in the second) with one more key, "megalith": the run's progress,
// as JSON. NNNNNN is the number of the run's last step, counted from 0. torch.load(weights_only=True) reads
// both. They are made from our own format, so they hold the same numbers for every layout of ranks.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/torch/crc32.h"
#include "libcore/checkpoint/torch/torch_file.h"
#include "libcore/checkpoint/torch/torch_layout.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json_names.h"
#include "libcore/train/saves/checkpoint_store.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwnKey = "megalith";
/// The names of Adam's tensors: ours and torch's.
constexpr std::pair<const char*, const char*> kMoments[] = {
    {"m.", "exp_avg"}, {"v.", "exp_avg_sq"}, {"master.", "master"}};

std::string pth_path(const std::string& root, const char* kind, int64_t number) {
  char name[64];
  std::snprintf(name, sizeof name, "%s_%06lld.pth", kind, static_cast<long long>(number));
  return root + "/" + name;
}

/// A torch.save file that is being written: a pickle, and tensors that are copied from another file.
class PthFile {
 public:
  PthFile(std::string path, const TensorFile& source) : path_(std::move(path)), source_(source) {}

  PickleWriter& pickle() { return pickle_; }
  /// Writes a tensor of the source into the pickle.
  void tensor(const StoredTensor& stored) {
    if (!stored.dtype)
      fail(ErrorKind::kInternal, source_.path(), ": tensor ", quote(stored.name), " of type ",
           stored.dtype_name);
    TensorSpec spec{.name = stored.name, .dtype = *stored.dtype, .shape = stored.shape()};
    pickle_tensor(pickle_, spec, specs_.size());
    specs_.push_back(std::move(spec));
  }
  void write() {
    std::vector<uint64_t> sizes;
    for (const TensorSpec& spec : specs_) sizes.push_back(spec.bytes());
    const TorchLayout layout(fs::path(path_).stem().string(), pickle_.finish(), sizes);
    AtomicFile file(path_);
    const std::string zeros(kZeros, '\0');
    for (uint64_t at = 0; at < layout.size(); at += kZeros)
      file.write(zeros.data(), std::min<uint64_t>(kZeros, layout.size() - at));
    std::vector<uint32_t> crcs;
    std::vector<std::byte> bytes;
    for (size_t i = 0; i < specs_.size(); ++i) {
      const TensorSpec& spec = specs_[i];
      bytes.resize(spec.bytes());
      source_.read(Box::whole(spec.name, spec.shape), View{bytes.data(), spec.dtype, spec.shape});
      crcs.push_back(crc32(0, bytes.data(), bytes.size()));
      file.write_at(layout.offset(i), bytes.data(), bytes.size());
    }
    for (const FilePart& part : layout.parts(crcs))
      file.write_at(part.offset, part.bytes.data(), part.bytes.size());
    file.commit();
  }

 private:
  /// The file is first filled with zeros, this many bytes at a time; then the parts are written over them.
  static constexpr uint64_t kZeros = uint64_t{1} << 20;

  std::string path_;
  const TensorFile& source_;
  PickleWriter pickle_;
  std::vector<TensorSpec> specs_;
};

bool is_parameter(const StoredTensor& tensor) {
  return !tensor.name.starts_with(kOptimizerPrefix);
}

void write_model(const std::string& path, const CheckpointReader& source) {
  PthFile file(path, source);
  file.pickle().begin_dict();
  for (const StoredTensor& tensor : source.tensors()) {
    if (!is_parameter(tensor)) continue;
    file.pickle().text(tensor.name);
    file.tensor(tensor);
  }
  file.pickle().end_dict();
  file.write();
}

/// Writes one of AdamW's parameter groups, with the numbers of its parameters, into the pickle.
void pickle_group(PickleWriter& pickle, const TrainConfig& train, bool decays,
                  std::pair<int64_t, int64_t> ids) {
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
  real("weight_decay", decays ? train.weight_decay : 0);
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
  for (int64_t id = ids.first; id < ids.second; ++id) pickle.integer(id);
  pickle.end_list();
  pickle.end_dict();
}

/// The parameters in the order of their numbers. Matrices, which decay, come before vectors, which do not, so
/// each group has one range of numbers.
std::vector<std::string> numbered(const CheckpointReader& source, int64_t& matrices) {
  std::vector<std::string> names;
  for (const bool matrix : {true, false}) {
    for (const StoredTensor& tensor : source.tensors())
      if (is_parameter(tensor) && (tensor.extents.size() > 1) == matrix) names.push_back(tensor.name);
    if (matrix) matrices = static_cast<int64_t>(names.size());
  }
  return names;
}

/// What our checkpoint holds besides tensors, and the parameters' names in the order of their numbers.
Json about(const CheckpointReader& source, const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push_back(name);
  return Json(Json::Object{{"state", source.json(kStateFile)},
                           {"args", source.json(kArgsFile)},
                           {"losses", source.json(kLossesFile)},
                           {"params", std::move(list)}});
}

void write_optimizer(const std::string& path, const CheckpointReader& source, Trainer& trainer) {
  PthFile file(path, source);
  PickleWriter& pickle = file.pickle();
  int64_t matrices = 0;
  const std::vector<std::string> names = numbered(source, matrices);
  const auto count = static_cast<int64_t>(names.size());
  pickle.begin_dict();
  pickle.text("state");
  pickle.begin_dict();
  for (int64_t id = 0; id < count; ++id) {
    const std::string& name = names[static_cast<size_t>(id)];
    // The optimizer's state was not saved.
    if (!source.find(concat(kOptimizerPrefix, kMoments[0].first, name))) continue;
    pickle.integer(id);
    pickle.begin_dict();
    pickle.text("step");
    pickle.real(static_cast<double>(trainer.optimizer().steps()));
    for (const auto& [ours, theirs] : kMoments) {
      const StoredTensor* moment = source.find(concat(kOptimizerPrefix, ours, name));
      if (!moment) continue;
      pickle.text(theirs);
      file.tensor(*moment);
    }
    pickle.end_dict();
  }
  pickle.end_dict();
  pickle.text("param_groups");
  pickle.begin_list();
  const TrainConfig& train = trainer.shape().train;
  pickle_group(pickle, train, true, {0, matrices});
  pickle_group(pickle, train, false, {matrices, count});
  pickle.end_list();
  pickle.text(kOwnKey);
  pickle.text(about(source, names).dump());
  pickle.end_dict();
  file.write();
}

/// The numbers NNNNNN of the pairs of files in the folder `root`.
std::vector<int64_t> numbers_of(const std::string& root) {
  std::vector<int64_t> numbers;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(root, error)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view kHead = "model_", kEnd = ".pth";
    if (!name.starts_with(kHead) || !name.ends_with(kEnd) || name.size() <= kHead.size() + kEnd.size())
      continue;
    const auto number =
        parse_int(std::string_view(name).substr(kHead.size(), name.size() - kHead.size() - kEnd.size()));
    if (number && *number >= 0) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

using NamedTensors = std::vector<std::pair<std::string, TorchTensor>>;

NamedTensors tensors_of(const TorchFile& file) {
  NamedTensors out;
  for (const TorchLeaf& leaf : leaves_of(file.tree, file.tree.root(), file.path()))
    if (file.tree[leaf.value].kind == PickleValue::Kind::kTensor)
      out.emplace_back(leaf.name, file.tensor(leaf.value));
  return out;
}

/// Throws if the optimizer's state is from another step, since it then does not fit the weights.
void require_step(const TorchFile& file, const TrainState& state, int64_t number) {
  if (state.iteration - 1 == number) return;
  fail(ErrorKind::kData, file.path(), ": holds the state after step ", state.iteration - 1,
       ", but its name and the model next to it belong to step ", number,
       "; put the right file back, or give --checkpoint ", state.iteration - 1);
}

/// Reads optimizer_NNNNNN.pth if Megalith wrote it: sets the progress of `start`, and adds the file's tensors
/// to `tensors` under our names.
void take_optimizer(const TorchFile& file, StartPoint& start, NamedTensors& tensors) {
  const PickleValue* own = file.tree.find(file.tree.root(), kOwnKey);
  if (!own || own->kind != PickleValue::Kind::kText)
    fail(ErrorKind::kData, file.path(), ": does not say how far the run had come (key \"", kOwnKey,
         "\"); another program wrote it: move it away to begin with the weights of the model next to it");
  const std::string where = concat(file.path(), ": ", kOwnKey);
  const Json run = Json::parse(std::string(own->text()), where);
  const JsonNames names_of_run(run, where);
  start.args = run["args"];
  start.args_place = concat(where, ": args");
  take_state(start, run["state"], file.path());
  if (const Json* batch = start.args.find("global_batch_size"); batch && batch->is_int())
    start.step_samples = batch->as_int();
  start.losses = LossHistory::from_json(run["losses"], concat(where, ": losses"));
  const Json::Array& names = run["params"].as_array();
  for (const auto& [key, tensor] : tensors_of(file))  // "state.7.exp_avg"
    for (const auto& [ours, theirs] : kMoments) {
      const std::vector<std::string> parts = split(key, '.');
      if (parts.size() != 3 || parts[2] != theirs) continue;
      const auto id = parse_int(parts[1]);
      if (!id || *id < 0 || static_cast<size_t>(*id) >= names.size())
        fail(ErrorKind::kData, file.path(), ": state has parameter ", quote(parts[1]), ", there are ",
             names.size());
      tensors.emplace_back(concat(kOptimizerPrefix, ours, names[static_cast<size_t>(*id)].as_string()),
                           tensor);
    }
}

/// The number of the newest pair below `root`; nothing when there is none.
std::optional<int64_t> newest_pth(const std::string& root) {
  const std::vector<int64_t> numbers = numbers_of(root);
  return numbers.empty() ? std::nullopt : std::optional(numbers.back());
}

/// Reads the pair with this number; a run resumes from it bit for bit. If there is only a model file, or
/// torch wrote it with our names, the result holds only weights. kNoInput, with a list of the existing
/// numbers; kData.
StartPoint pth_start(const std::string& root, int64_t number) {
  const std::string model = pth_path(root, "model", number), optimizer = pth_path(root, "optimizer", number);
  if (!file_exists(model)) {
    std::vector<std::string> there;
    for (const int64_t one : numbers_of(root)) there.push_back(std::to_string(one));
    fail(ErrorKind::kNoInput, model, ": is not there; ",
         there.empty() ? concat(root, " holds no model_NNNNNN.pth") : "there are " + join(there, ", "));
  }
  StartPoint start;
  start.path = model;
  NamedTensors tensors = tensors_of(open_torch(model));
  if (file_exists(optimizer)) {
    const TorchFile file = open_torch(optimizer);
    take_optimizer(file, start, tensors);
    require_step(file, *start.state, number);
  }
  start.tensors = std::make_shared<const TorchTensorFile>(model, std::move(tensors));
  return start;
}

/// Refuses a run that would start from a model file in --save without its optimizer file: the run would begin
/// at step 0, and its pairs would overwrite the existing ones. Returns the message; empty if the run may
/// start.
std::string overwriting(const StartPoint& start, const std::string& save) {
  const fs::path model = start.path;
  std::error_code error;
  if (start.state || !fs::equivalent(model.parent_path(), save, error)) return {};
  std::string optimizer = model.filename().string();
  optimizer.replace(0, optimizer.find('_'), "optimizer");
  return concat(
      (model.parent_path() / optimizer).string(),
      ": is not there; the weights alone begin at step 0, whose pairs would overwrite those in --save ", save,
      "; put it back, or move ", start.path, " to a separate folder and give that as --load");
}

class FoundPair final : public FoundCheckpoint {
 public:
  FoundPair(std::string root, int64_t number) : root_(std::move(root)), number_(number) {}

  StartPoint start(const CheckpointConfig& config, const ModelConfig&, Trained) const override {
    StartPoint start = pth_start(root_, number_);
    start.no_fresh_start = overwriting(start, config.save);
    return start;
  }
  std::optional<SavedArgs> args() const override {
    Json args = pth_start(root_, number_).args;
    if (!args.is_object()) return std::nullopt;  // there is only a model file, which stores no options
    return SavedArgs{.args = std::move(args), .folder = root_, .tokenizer = root_};
  }

 private:
  std::string root_;
  int64_t number_;
};

class PthStore final : public CheckpointStore {
 public:
  std::unique_ptr<FoundCheckpoint> find(const CheckpointPlace& place) const override {
    const auto number = place.number ? place.number : newest_pth(place.path);
    return number ? std::make_unique<FoundPair>(place.path, *number) : nullptr;
  }

  // Writes the optimizer's file first, because a model file without it would count as weights only.
  SavePlan save(const SaveRequest& save) const override {
    const int64_t number = save.state.iteration - 1;
    const std::string model = pth_path(save.root, "model", number);
    return {
        .root = passage(save.root), .path = model, .make = [&save, number, model](const std::string& ours) {
          const CheckpointReader source(ours);
          write_optimizer(pth_path(save.root, "optimizer", number), source, save.trainer);
          write_model(model, source);
        }};
  }

  void clear_leftovers(const std::string& save, const LockFile& lock) const override {
    for (const char* const begin : {"model_", "optimizer_"}) lock.remove_leftovers_in(save, begin);
  }
  void enter(const CheckpointConfig& config) const override {
    std::error_code ignored;  // the next save reports the problem
    fs::remove_all(passage(config.save), ignored);
  }
  std::vector<int64_t> without_tracker(const std::string& folder) const override {
    std::vector<int64_t> iterations = numbers_of(folder);
    for (int64_t& iteration : iterations) ++iteration;
    return iterations;
  }
  // Removes the model's file first: the optimizer's file alone is no checkpoint.
  void remove(const std::string& save, const std::function<bool(int64_t iteration)>& gone) const override {
    for (const int64_t number : numbers_of(save))
      if (gone(number + 1))
        for (const char* const kind : {"model", "optimizer"}) remove_file(pth_path(save, kind, number));
  }
  std::optional<std::vector<std::string>> options_to_resume(const CheckpointConfig& config,
                                                            int64_t iteration) const override {
    if (!config.number && !config.load.empty()) return std::nullopt;
    return std::vector{std::string("--checkpoint"), std::to_string(iteration - 1)};
  }
  // Refuses a single file of a pair, because it is not a checkpoint. The pairs of a folder belong to one run.
  void refuse_part(const std::string& path) const override {
    const std::string folder = parent_or_here(path).string();
    if (path.ends_with(".pth") && newest_pth(folder))
      fail(ErrorKind::kData, path, ": is one file of a checkpoint; give its folder, ", folder,
           ", or to choose among its steps --save ", folder, " --checkpoint N");
  }

 private:
  static std::string passage(const std::string& save) { return save + "/.pth"; }
};

[[maybe_unused]] const bool kAdded = add_checkpoint_store(
    add_checkpoint_format(3, "pth", {.tracked = false, .first_due = 1, .epoch_ends = true}),
    std::make_unique<PthStore>());

}  // namespace
}  // namespace megalith
