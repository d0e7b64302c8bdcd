#pragma once

#include <memory>
#include <string>

#include "libcore/checkpoint/loss_history.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/config/model_config.h"
#include "libcore/convert/sources/megatron_source.h"
#include "libcore/convert/sources/model_view.h"
#include "libcore/tensor/device.h"
#include "libcore/text/formats/make_tokenizer.h"

namespace megalith {

/// Throws kData if our checkpoint in `folder` holds only what megalith-finetune trained on top of a model,
/// which its args (`args`) say. The message names that model and the command that accepts both the model and
/// the adapter.
void refuse_adapter_alone(const Json& args, const std::string& folder);

/// The folder of the run that holds `path`, which has the run's tracker: `path` itself, or one of the three
/// folders above it. Empty if there is none.
std::string run_folder_of(const std::string& path);

/// Whether another tool left something in the folder that cannot be read directly: a peft adapter, a GGUF
/// file, weights without their config.json, or the checkpoint-N folders of Hugging Face's Trainer.
bool holds_foreign_model(const std::string& folder);

/// A trained model on disk, whichever tool wrote it.
class ModelSource {
 public:
  /// `name`: the folder that training saved into, here or with Megatron-LM (its tracker is followed), one
  /// iter_NNNNNNN folder, one of Megatron's mp_rank_* folders or .pt files, a Hugging Face folder, or the id
  /// of a model that was downloaded from Hugging Face (io/cache/hf_cache.h). Reads and checks everything
  /// except the tensors' bytes. kNoInput if nothing is there; kData for damage and for checkpoints of other
  /// kinds, which the message names.
  explicit ModelSource(const std::string& name, const SourceOptions& options = {});

  const std::string& path() const { return path_; }  // path of the folder that is read
  // finish() has been called; vocab_size is the true vocabulary
  const ModelConfig& config() const { return config_; }
  // its type is empty if the model came without a tokenizer
  const TokenizerFiles& tokenizer() const { return tokenizer_; }
  /// The folder of the tokenizer's files; empty if there is none.
  const TokenizerFolder& tokenizer_folder() const { return tokenizer_folder_; }
  DType dtype() const { return dtype_; }  // type of the stored parameters

  /// The model with the names and the row order of its own files.
  ModelView view() const;

  /// Every option of the run that trained it, if the checkpoint keeps them; otherwise null.
  const Json& args() const { return args_; }
  int64_t iteration() const { return iteration_; }  // kRelease if it is not known
  /// The losses of the training up to this checkpoint; empty if the checkpoint does not keep them.
  const LossHistory& losses() const { return losses_; }

  /// The state of training in a Megatron checkpoint. With SourceOptions::optimizer, tensors() includes Adam's
  /// state.
  const SourceTraining& training() const { return training_; }

  /// All tensors under our names and shapes.
  const TensorFile& tensors() const { return *tensors_; }

 private:
  void open_checkpoint(const std::string& path);
  void open_megatron(const std::string& path, SourceOptions options);
  void open_hugging_face(const std::string& path, const SourceOptions& options);

  std::string path_;
  ModelConfig config_;
  TokenizerFiles tokenizer_;
  TokenizerFolder tokenizer_folder_;
  DType dtype_ = DType::kF32;
  int64_t iteration_ = kRelease;
  Json args_;
  LossHistory losses_;
  SourceTraining training_;
  std::unique_ptr<TensorFile> tensors_;
  const TensorFile* theirs_ = nullptr;  // owned by tensors_: the tensors under Hugging Face's names
};

/// The shape of a model. Of a Hugging Face folder only config.json is read, so its weights need not be there.
/// The same errors as ModelSource's.
ModelConfig shape_of_model(const std::string& name);

}  // namespace megalith
