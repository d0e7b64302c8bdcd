#include "libcore/model/params.h"

#include <algorithm>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {

Param cut(Param param, int axis, const TensorSplit& split, int64_t share) {
  const int64_t whole = param.global[axis];
  if (share == 0 && whole % split.size != 0)
    fail(ErrorKind::kInternal, "parameter ", quote(param.name), " ", param.global, ": axis ", axis,
         " is not a multiple of the tensor-parallel size ", split.size);
  param.shard_axis = axis;
  param.local = param.global;
  param.local[axis] = share == 0 ? whole / split.size : share;
  param.offset = split.rank * param.local[axis];
  return param;
}

Param& ParamTable::add(Param param) {
  if (!places_.try_emplace(param.name, params_.size()).second)
    fail(ErrorKind::kInternal, "parameter ", quote(param.name), " is declared twice");
  if (param.local.rank == 0) param.local = param.global;
  param.unit = std::max(0, units_ - 1);
  if (plan_.frozen && !param.adapter) param.trainable = false;
  return params_.emplace_back(std::move(param));
}

Constant& ParamTable::constant(const std::string& name, Shape shape,
                               std::function<std::vector<float>()> make) {
  for (Constant& known : constants_)
    if (known.name == name) return known;
  return constants_.emplace_back(Constant{name, shape, std::move(make), {}});
}

Param* ParamTable::find(std::string_view name) {
  const auto it = places_.find(std::string(name));
  return it == places_.end() ? nullptr : &params_[it->second];
}

int64_t ParamTable::elements() const {
  int64_t sum = 0;
  for (const Param& param : params_)
    if (param.tie.empty()) sum += param.global.elements();
  return sum;
}

}  // namespace megalith
