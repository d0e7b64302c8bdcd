#pragma once

#include <string>

#include "libcore/convert/output/conversion.h"
#include "libcore/convert/output/output.h"

namespace megalith {

/// How Megatron's ranks cut a model, and which of its layers hold it.
struct MegatronLayout {
  int tensor = 1, pipeline = 1;
  bool engine = true;  // names of Transformer Engine's layers; else of Megatron's own ("local")
};
/// Writes DIR/release/mp_rank_…/model_optim_rng.pt for each rank, in Megatron's format "torch" with the names
/// of megatron-core, and the tracker; the tokenizer's files in DIR/tokenizer. kUsage when the model cannot be
/// cut so, or DIR is not new.
OutputPlan plan_megatron(const Conversion& conversion, const MegatronLayout& layout);
void export_megatron(const Conversion& conversion, const std::string& output, const MegatronLayout& layout);

}  // namespace megalith
