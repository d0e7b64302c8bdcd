#pragma once

#include <string>
#include <vector>

#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/checkpoint/views/rows.h"
#include "libcore/config/model_config.h"

namespace megalith {

/// The names that GPTModel, the tutorial's class, gives its parameters in state_dict(). Queries, keys and
/// values are layers of their own, and the head is untied.
const NameMap& tutorial_names();

/// The token embedding in them, a name that no other model has.
inline constexpr const char* kTutorialEmbedding = "tok_emb.weight";

/// Whether GPTModel is such a model: GPT-2 with GELU by tanh and biases in all linear layers but queries,
/// keys and values, which may lack them.
bool fits_tutorial(const ModelConfig&);

/// A parameter as a pair of .pth files holds it: rows of one of ours, all of them or those of one kind.
struct PthParameter {
  std::string name;  // in the pair
  std::string ours;
  Shape shape;      // in the pair
  MatrixForm form;  // of ours
  std::vector<RowRun> runs;
  bool decays;  // whether it decays without --weight-decay-all
};
/// The parameters of such a model in the order of GPTModel.parameters(), by which torch's optimizer numbers
/// them. fits_tutorial() must hold.
std::vector<PthParameter> tutorial_parameters(const ModelConfig&);
/// The same of a model that is saved under our names: each parameter is whole, sorted by name.
std::vector<PthParameter> own_parameters(const TensorFile& ours);

}  // namespace megalith
