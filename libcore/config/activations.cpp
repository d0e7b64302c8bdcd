#include "libcore/config/activations.h"

#include <algorithm>

#include "libcore/base/text.h"

namespace megalith {

const std::vector<ActivationRow>& activations() {
  static const std::vector<ActivationRow> kRows = {
      {ActivationFunction::kGeluTanh,
       {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_accurate"},
       "gelu"},
      {ActivationFunction::kGelu, {"gelu", "gelu_python"}, ""},
      {ActivationFunction::kQuickGelu, {"quick_gelu"}, "fast_gelu"},
      {ActivationFunction::kSilu, {"silu", "swish"}, "silu"},
      {ActivationFunction::kRelu, {"relu"}, "relu"},
      {ActivationFunction::kSquaredRelu, {"relu2"}, ""}};
  return kRows;
}

std::optional<ActivationFunction> hf_activation(std::string_view name) {
  for (const ActivationRow& row : activations())
    if (std::find(row.hf.begin(), row.hf.end(), name) != row.hf.end()) return row.function;
  return std::nullopt;
}

std::optional<ActivationFunction> mindformers_activation(std::string_view name) {
  for (const ActivationRow& row : activations())
    if (!name.empty() && row.mindformers == name) return row.function;
  return std::nullopt;
}

std::string hf_name(ActivationFunction function) {
  for (const ActivationRow& row : activations())
    if (row.function == function) return std::string(row.hf.front());
  return {};
}

std::string hf_activation_names() {
  std::vector<std::string> names;
  for (const ActivationRow& row : activations()) names.insert(names.end(), row.hf.begin(), row.hf.end());
  return join(names, ", ");
}

}  // namespace megalith
