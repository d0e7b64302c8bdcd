#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/ops/activation_function.h"

namespace megalith {

/// One activation function, and its names in other tools. A name that no row has is refused wherever it is
/// read.
struct ActivationRow {
  ActivationFunction function;
  std::vector<std::string_view> hf;  // transformers' ACT2FN (activations.py); the first is --hidden-act's
  std::string_view mindformers;      // get_activation (mindformers/modules/activation.py); empty: none
};

const std::vector<ActivationRow>& activations();

/// The function that transformers and --hidden-act call so.
std::optional<ActivationFunction> hf_activation(std::string_view name);
/// The function that MindFormers calls so: its gelu is the tanh form, its fast_gelu is transformers'
/// quick_gelu.
std::optional<ActivationFunction> mindformers_activation(std::string_view name);
/// The first of transformers' names.
std::string hf_name(ActivationFunction);
/// All names of --hidden-act, for messages.
std::string hf_activation_names();

}  // namespace megalith
