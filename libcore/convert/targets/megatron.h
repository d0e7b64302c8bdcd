#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libcore/convert/output/conversion.h"
#include "libcore/convert/output/output.h"

namespace megalith {

/// How a model is divided among Megatron's ranks, and which names its layers have.
struct MegatronLayout {
  int tensor = 1, pipeline = 1;
  // true: the layers' names are those of Transformer Engine; false: those of Megatron itself ("local")
  bool engine = true;
};
/// The state of a run that is written in addition to its parameters. Empty members are not written.
struct MegatronRun {
  int64_t iteration = 0;
  Json::Object options = {};    // the run's options, with the names of Megatron's args
  Json::Object progress = {};   // args that say how far the run has come: consumed_train_samples, …
  Json::Object scheduler = {};  // opt_param_scheduler
  /// The members of one of Adam's parameter groups: lr, betas, eps, step. If not empty, the conversion's
  /// tensors include moments ("optim.m.NAME", "optim.v.NAME") and, if parameters have 16 bits, masters
  /// ("optim.master.NAME").
  Json::Object adam = {};
  double weight_decay = 0;
  bool decay_all = false;               // whether vectors decay, too
  std::optional<Json> loss_scale = {};  // its members are scale, growth_tracker and hysteresis_tracker

  bool optimizer() const { return !adam.empty(); }
};

/// Writes a model to the folder DIR (`output`) in Megatron's format "torch", with the names of megatron-core:
/// DIR/release/mp_rank_…/model_optim_rng.pt for each rank, the tokenizer's files in DIR/tokenizer, and the
/// tracker. Throws kUsage if `layout` cannot divide the model, or if DIR is not new.
OutputPlan plan_megatron(const Conversion& conversion, const MegatronLayout& layout);
void export_megatron(const Conversion& conversion, const std::string& output, const MegatronLayout& layout);

/// Writes a checkpoint of a run, including the run's state, to ROOT/iter_NNNNNNN in the format of
/// export_megatron(). Then writes ROOT/tokenizer and the tracker. Replaces an older folder of that iteration
/// and changes nothing else. Returns the folder.
std::string export_megatron_run(const Conversion& conversion, const std::string& root,
                                const MegatronLayout& layout, const MegatronRun& run);
/// Whether an option of Megatron-LM names the activation.
bool has_megatron_activation(const ModelConfig& config);
/// Why Megatron-LM cannot have the model in this layout; empty if it can.
std::string no_megatron_layout(const ModelConfig& config, const MegatronLayout& layout);

}  // namespace megalith
