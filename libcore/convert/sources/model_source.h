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

/// kData if `args`, the args of our checkpoint in `folder`, say that the checkpoint holds only what
/// megalith-finetune trained on top of a model. The message names that model and the command that takes the
/// model and the adapter.
void refuse_adapter_alone(const Json& args, const std::string& folder);

/// Whether another tool left a model here that cannot be read directly: a peft adapter, a GGUF file, weights
/// without their config.json, or the checkpoint-N folders of Hugging Face's Trainer.
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

  const std::string& path() const { return path_; }      // of the folder that is read
  const ModelConfig& config() const { return config_; }  // after finish(); vocab_size is the true vocabulary
  const TokenizerFiles& tokenizer() const { return tokenizer_; }  // type empty: the model came without one
  /// The folder of the tokenizer's files; empty: none.
  const TokenizerFolder& tokenizer_folder() const { return tokenizer_folder_; }
  DType dtype() const { return dtype_; }  // of the stored parameters

  /// The model with the names and the row order of its own files.
  ModelView view() const;

  /// Every option of the run that trained it, if the checkpoint keeps them; otherwise null.
  const Json& args() const { return args_; }
  int64_t iteration() const { return iteration_; }  // kRelease: not known
  /// The losses of the training up to this checkpoint, if it keeps them.
  const LossHistory& losses() const { return losses_; }

  /// The state of training of a Megatron checkpoint. With SourceOptions::optimizer, Adam's state is among the
  /// tensors.
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
  const TensorFile* theirs_ = nullptr;  // belongs to tensors_: the tensors under Hugging Face's names
};

}  // namespace megalith
