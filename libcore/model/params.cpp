#include "libcore/model/params.h"

#include <algorithm>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {

Param& ParamTable::add(Param param) {
  if (find(param.name)) fail(ErrorKind::kInternal, "parameter ", quote(param.name), " is declared twice");
  return params_.emplace_back(std::move(param));
}

Param* ParamTable::find(std::string_view name) {
  const auto it =
      std::find_if(params_.begin(), params_.end(), [&](const Param& p) { return p.name == name; });
  return it == params_.end() ? nullptr : &*it;
}

int64_t ParamTable::elements() const {
  int64_t sum = 0;
  for (const Param& param : params_)
    if (param.tie.empty()) sum += param.global.elements();
  return sum;
}

}  // namespace megalith
