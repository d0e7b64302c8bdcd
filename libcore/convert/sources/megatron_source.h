#pragma once

#include <memory>
#include <optional>
#include <string>

#include "libcore/checkpoint/tensor_file.h"
#include "libcore/checkpoint/torch/torch_file.h"
#include "libcore/config/model_config.h"
#include "libcore/json/json.h"
#include "libcore/text/tokenizer_files.h"

namespace megalith {

/// What the user says about a checkpoint in addition to what it says itself, and how to open it.
struct SourceOptions {
  int64_t vocab_size = 0;          // without padding; 0: not given
  int heads = 0;                   // attention heads, for a checkpoint without args; 0: not given
  TokenizerFolder tokenizer = {};  // empty: not given
  bool beside = false;  // `tokenizer` was found next to the checkpoint, so the args' vocab_size counts, too
  CrcCheck crc = CrcCheck::kYes;
  PendingFiles* writing = nullptr;  // see ReadableFile; only for a folder of ranks or a Hugging Face folder
  bool optimizer = false;  // also open Adam's state, as "optim.m.NAME", "optim.v.NAME", "optim.master.NAME"
  /// If the true vocabulary is unknown, count its padding as vocabulary. Only for listing a checkpoint: a
  /// conversion would keep the padding.
  bool padded = false;
};

/// What a checkpoint says about the training that wrote it.
struct SourceTraining {
  Json args = {};       // Megatron's args of the run; null if the checkpoint is not Megatron's
  Json scheduler = {};  // Megatron's opt_param_scheduler; null if there is none
  std::optional<int64_t> optimizer_steps = {};  // the steps of Adam, if its state was opened
  std::string no_optimizer = {};                // why Adam's state was not opened although it was requested
  // its members are scale, growth_tracker and hysteresis_tracker; null if there is none
  Json loss_scale = {};
};

/// A model that Megatron-LM saved.
struct MegatronModel {
  std::string path;    // the folder (or single file) that was read
  ModelConfig config;  // after finish(), with the true vocabulary
  Json args;           // args of the run; an empty object if the checkpoint has none
  int64_t iteration;
  std::unique_ptr<TensorFile> tensors;  // under our names
  SourceTraining training = {};
};

/// Whether `path` is a checkpoint that Megatron-LM saved: one rank's file ("model_optim_rng.pt"), an
/// mp_rank_* folder, or the folder of an iteration with such folders or with a distributed checkpoint.
bool is_megatron(const std::string& path);

/// Opens a checkpoint of Megatron-LM: any version (0 to 3), any generation of names, any tensor and pipeline
/// parallel size, virtual pipelines, or a distributed checkpoint (torch_dist). Everything except the tensors'
/// bytes is read and checked first. kNoInput, kIo. Throws kData for damage, for a parameter that our models
/// have no place for, if ranks are missing or disagree, and if the true size of the vocabulary is unknown.
MegatronModel open_megatron(const std::string& path, const SourceOptions& options);

/// The size of the vocabulary without padding: from the ids of the given tokenizer, else from --vocab-size,
/// else from the vocab_size of the args. Throws kData if none of these is known. That message states `rows`,
/// the rows of the checkpoint's embedding, and what the args say.
int64_t true_vocabulary(const SourceOptions& options, int64_t rows, const Json& args,
                        const std::string& where);

}  // namespace megalith
