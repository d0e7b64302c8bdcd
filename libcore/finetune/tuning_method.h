#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libcore/convert/output/adapter.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/finetune/finetune_config.h"
#include "libcore/finetune/lora.h"
#include "libcore/train/run/loop.h"

namespace megalith {

/// A model and its adapter.
struct TunedModel {
  std::string model;    // a name for ModelSource
  std::string adapter;  // a peft folder; empty: none
};

/// What a run trains, and which result it writes at the end. Refers to options and model, which must outlive
/// this object.
class TuningMethod {
 public:
  /// Reads the adapter that the options begin with, if any. Errors are those of Adapter, lora_plan() and
  /// adapter_params(), and kUsage for options that contradict the adapter. `ends`: ids that end a text of the
  /// tuned model.
  TuningMethod(const FinetuneConfig& config, const ModelSource& model, const std::vector<int32_t>& ends);

  const Tuning& tuning() const { return tuning_; }
  /// Makes the run learn which of two answers is better, according to the options; see Tuning::Preferences.
  void learn_preferences(SampleSource examples, int64_t count);

  /// Writes the checkpoint of an iteration in a form that other programs read: as an adapter folder or, if
  /// all parameters were trained, as a model folder.
  void write_result(int64_t iteration) const;
  /// The model and adapter that write_result() wrote; for iteration 0, those that the run begins with.
  TunedModel result(int64_t iteration) const;

 private:
  void set_lora();
  void set_prefix();
  void log_method(const std::string& what) const;
  void take_adapter_settings();
  std::string checkpoint(int64_t iteration) const;
  const TokenizerFolder& tokenizer_folder(const ModelSource& result) const;
  void write_merged(const std::string& output) const;

  const FinetuneConfig& config_;
  const ModelSource& model_;
  Tuning tuning_;
  Json generation_;  // generation_config.json of the merged model
  std::optional<LoraSettings> lora_;
  std::optional<Adapter> begin_;
  std::unique_ptr<TensorFile> adapters_;
};

}  // namespace megalith
