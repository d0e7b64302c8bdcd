#include "libcore/convert/sources/megatron_optimizer.h"

#include <cmath>
#include <set>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/name_maps/megatron_names.h"

namespace megalith {
namespace {

using Kind = PickleValue::Kind;
constexpr double kGreatestCount = 0x1p53;  // up to this number, a double can hold every integer

/// One of the optimizer's groups of parameters: those with weight decay or those without, or all.
struct Group {
  std::vector<int64_t> numbers;
  std::vector<const RankParam*> params;  // parallel to `numbers`
};

class Reader {
 public:
  Reader(const TorchFile& file, const std::vector<RankParam>& params)
      : file_(file), tree_(file.tree), params_(params) {}

  RankOptimizer read() {
    const auto optimizer = tree_.find_ref(tree_.root(), "optimizer");
    if (!optimizer || tree_[*optimizer].kind != Kind::kDict) return nothing("it was saved without");
    const auto inner = tree_.find_ref(*optimizer, "optimizer");
    const PickleRef adam = inner.value_or(*optimizer);
    const auto state = tree_.find_ref(adam, "state"), groups = tree_.find_ref(adam, "param_groups");
    if (!state || !groups || tree_[*state].kind != Kind::kDict || tree_.members(*state).empty())
      return nothing("of another form than Megatron's Adam without --use-distributed-optimizer");
    read_groups(*groups);
    read_state(*state);
    if (const auto masters = tree_.find_ref(*optimizer, "fp32_from_fp16_params")) read_masters(*masters);
    if (const auto scaler = tree_.find_ref(*optimizer, "grad_scaler")) read_scaler(*scaler);
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    fail(ErrorKind::kData, file_.path(), ": its optimizer ", what,
         "; give --no-load-optim to continue with fresh moments");
  }
  static RankOptimizer nothing(std::string why) { return {.none = std::move(why)}; }

  const std::vector<PickleRef>& list(PickleRef ref, const char* what) const {
    const PickleValue& value = tree_[ref];
    if (value.kind != Kind::kList && value.kind != Kind::kTuple) refuse(concat("has no list of ", what));
    return value.items();
  }

  /// The value of a number or of a tensor of one element; empty for anything else.
  std::optional<double> number(PickleRef ref) const {
    const PickleValue& value = tree_[ref];
    if (value.kind == Kind::kInt) return static_cast<double>(value.whole());
    if (value.kind == Kind::kFloat) return value.real();
    if (value.kind != Kind::kTensor) return {};
    const TorchTensor& tensor = file_.tensor(ref);
    const Shape shape = tensor.shape();
    if (shape.elements() != 1 || !tensor.type->dtype) return {};
    float one = 0;
    Shape first = shape;
    for (int axis = 0; axis < first.rank; ++axis) first[axis] = 0;
    copy_tensor(tensor, first, View{&one, DType::kF32, shape}, first, shape);
    return one;
  }

  /// A count, such as a number of steps. Throws kData unless it is at least `least`, which is below 0 for a
  /// counter that can be negative.
  std::optional<int64_t> whole(PickleRef ref, const char* what, double least = 0) const {
    const auto found = number(ref);
    if (!found) return {};
    if (!(*found >= least && *found < kGreatestCount))
      refuse(concat("has ", format_double(*found), " for ", quote(what), ", wanted a count"));
    return static_cast<int64_t>(*found);
  }

  static bool decays(const RankParam& param) {
    return !is_vector(param.key, static_cast<int>(param.tensor->extents.size()));
  }

  void take_step(PickleRef owner) {
    if (const auto step = tree_.find_ref(owner, "step"))
      if (const auto steps = whole(*step, "step")) out_.steps = *steps;
  }

  void read_groups(PickleRef ref) {
    for (const PickleRef group_ref : list(ref, "groups")) {
      Group group;
      const auto numbers = tree_.find_ref(group_ref, "params"), factor = tree_.find_ref(group_ref, "wd_mult");
      if (!numbers || !factor) refuse("has a group without \"params\" or \"wd_mult\"");
      for (const PickleRef item : list(*numbers, "params")) {
        if (tree_[item].kind != Kind::kInt) refuse("has a parameter without a number");
        group.numbers.push_back(tree_[item].whole());
        if (!numbers_.insert(group.numbers.back()).second)
          refuse(concat("has two parameters with the number ", group.numbers.back()));
      }
      const bool decay = number(*factor).value_or(0) != 0;
      const bool all = decay && group.numbers.size() == params_.size();
      for (const RankParam& param : params_)
        if (all || decays(param) == decay) group.params.push_back(&param);
      if (group.numbers.size() != group.params.size() && !group.numbers.empty())
        refuse(concat("has ", group.numbers.size(), " parameters ", decay ? "with" : "without",
                      " weight decay, the model ", group.params.size()));
      if (group.numbers.empty()) group.params.clear();
      take_step(group_ref);
      groups_.push_back(std::move(group));
    }
  }

  TorchTensor moment(PickleRef ref, const RankParam& param, const char* what) const {
    if (tree_[ref].kind != Kind::kTensor) refuse(concat("has no ", what, " of ", quote(param.key)));
    const TorchTensor& tensor = file_.tensor(ref);
    if (tensor.extents != param.tensor->extents)
      refuse(concat("has a ", what, " of another shape than ", quote(param.key)));
    return tensor;
  }

  void read_state(PickleRef ref) {
    std::map<int64_t, PickleRef> states;
    const auto& members = tree_.members(ref);
    for (size_t i = 0; i + 1 < members.size(); i += 2)
      if (tree_[members[i]].kind == Kind::kInt) states[tree_[members[i]].whole()] = members[i + 1];
    for (const Group& group : groups_)
      for (size_t i = 0; i < group.params.size(); ++i) {
        const RankParam& param = *group.params[i];
        const auto state = states.find(group.numbers[i]);
        if (state == states.end()) refuse(concat("has no state of ", quote(param.key)));
        const auto m = tree_.find_ref(state->second, "exp_avg"),
                   v = tree_.find_ref(state->second, "exp_avg_sq");
        if (!m || !v) refuse(concat("has no Adam state of ", quote(param.key)));
        out_.m.emplace(param.name, moment(*m, param, "first moment"));
        out_.v.emplace(param.name, moment(*v, param, "second moment"));
        take_step(state->second);
      }
    if (const auto step = tree_.find_ref(ref, "common_step"))
      if (const auto steps = whole(*step, "common_step")) out_.steps = *steps;
    if (out_.m.size() != params_.size())
      refuse(concat("has the state of ", out_.m.size(), " parameters, the model has ", params_.size()));
  }

  void read_masters(PickleRef ref) {
    const auto& groups = list(ref, "masters");
    if (groups.size() != groups_.size()) refuse("has master weights for groups that it does not have");
    for (size_t g = 0; g < groups.size(); ++g) {
      const auto& masters = list(groups[g], "masters");
      if (masters.size() != groups_[g].params.size())
        refuse("has master weights for parameters that it does not have");
      for (size_t i = 0; i < masters.size(); ++i) {
        const RankParam& param = *groups_[g].params[i];
        out_.masters.emplace(param.name, moment(masters[i], param, "master"));
      }
    }
  }

  void read_scaler(PickleRef ref) {
    Json::Object scaler;
    for (const char* key : {"scale", "growth_tracker", "hysteresis_tracker"}) {
      const auto value = tree_.find_ref(ref, key);
      const auto found = value ? number(*value) : std::nullopt;
      if (!found) return;  // a constant loss scale has an empty state
      if (std::string_view(key) != "scale")
        scaler.emplace_back(key, *whole(*value, key, -kGreatestCount));
      else if (*found > 0 && std::isfinite(*found))
        scaler.emplace_back(key, *found);
      else
        refuse(concat("has ", format_double(*found), " for ", quote(key), ", wanted a number above 0"));
    }
    out_.loss_scale = Json(std::move(scaler));
  }

  const TorchFile& file_;
  const PickleTree& tree_;
  const std::vector<RankParam>& params_;
  std::vector<Group> groups_;
  std::set<int64_t> numbers_;  // of all groups
  RankOptimizer out_;
};

}  // namespace

RankOptimizer read_rank_optimizer(const TorchFile& file, const std::vector<RankParam>& params) {
  return Reader(file, params).read();
}

}  // namespace megalith
