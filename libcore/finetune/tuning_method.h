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

/// Sets up what a run trains, and writes the result at its end. Refers to options and model, which must
/// outlive this object.
class TuningMethod {
 public:
  /// Reads the adapter with which the run begins, if the options name one. `ends`: ids that end a text of the
  /// tuned model. Throws what Adapter, lora_plan() and adapter_params() throw, and kUsage for options that
  /// contradict the adapter.
  TuningMethod(const FinetuneConfig& config, const ModelSource& model, const std::vector<int32_t>& ends);

  const Tuning& tuning() const { return tuning_; }
  /// Lets the run learn which of two answers is better, as the options say; see Tuning::Preferences.
  void learn_preferences(SampleSource examples, int64_t count);

  /// Names the run, so that only the same one resumes from its checkpoints (kTuningRun). `data`: a hash of
  /// what it trains on; empty: it does not train. `evaluated`: a hash of what it evaluates on; may be empty.
  /// Throws what TensorFile::read() throws.
  void name_run(const std::string& data, const std::string& evaluated);

  /// Writes the checkpoint of an iteration in a form that other programs read: an adapter folder or, if all
  /// parameters were trained, a model folder.
  void write_result(int64_t iteration) const;
  /// The model and adapter that write_result() wrote. For iteration 0: those with which the run begins.
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
