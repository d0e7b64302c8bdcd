#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libcore/convert/output/conversion.h"
#include "libcore/convert/output/output.h"

namespace megalith {

/// How Megatron's ranks cut a model, and what its layers are called.
struct MegatronLayout {
  int tensor = 1, pipeline = 1;
  bool engine = true;  // names of Transformer Engine's layers; otherwise of Megatron's own ("local")
};
/// The state of a run, written in addition to its parameters. Empty members are not written.
struct MegatronRun {
  int64_t iteration = 0;
  Json::Object options = {};    // of the run, with the names of Megatron's args
  Json::Object progress = {};   // args that say how far the run is: consumed_train_samples, …
  Json::Object scheduler = {};  // opt_param_scheduler
  /// The members of a parameter group: lr, betas, eps, step. If not empty, the conversion's tensors include
  /// moments ("optim.m.NAME", "optim.v.NAME") and, if parameters have 16 bits, masters ("optim.master.NAME").
  Json::Object adam = {};
  double weight_decay = 0;
  std::optional<Json> loss_scale = {};  // scale, growth_tracker, hysteresis_tracker

  bool optimizer() const { return !adam.empty(); }
};

/// Writes DIR/release/mp_rank_…/model_optim_rng.pt for each rank, in Megatron's format "torch" with the names
/// of megatron-core, and the tracker; the tokenizer's files go to DIR/tokenizer. kUsage if `layout` cannot
/// cut the model, or if DIR is not new.
OutputPlan plan_megatron(const Conversion& conversion, const MegatronLayout& layout);
void export_megatron(const Conversion& conversion, const std::string& output, const MegatronLayout& layout);

/// Writes a checkpoint of a run, with the run's state, as ROOT/iter_NNNNNNN in the format of
/// export_megatron(), then ROOT/tokenizer and the tracker. Replaces an older folder of that iteration and
/// leaves everything else. Returns the folder.
std::string export_megatron_run(const Conversion& conversion, const std::string& root,
                                const MegatronLayout& layout, const MegatronRun& run);
/// Why `layout` cannot cut a model; empty: it can.
std::string no_megatron_layout(const ModelConfig& config, const MegatronLayout& layout);

}  // namespace megalith
