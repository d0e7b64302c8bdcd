#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/config/train_config.h"
#include "libcore/options/cli.h"

namespace megalith {

/// Options that PaddleNLP's training scripts (run_pretrain.py, finetune_generation.py) share and whose names
/// differ from ours. docs/from-paddlenlp.md.
struct PaddleNames {
  std::string logging_dir;
  std::vector<std::string> report_to;
  std::optional<int> sharding_degree, data_degree;

  template <class V>
  void fields(V&& v) {
    v("report-to", report_to,
      "tensorboard, visualdl, all: write TensorBoard's files to --logging-dir; none: nothing.",
      metavar("NAME"), offers({"tensorboard", "visualdl", "all", "none"}));
    v("logging-dir", logging_dir, "Folder of --report-to.", metavar("DIR"),
      default_text("runs below --output-dir"));
    v("sharding-parallel-degree", sharding_degree,
      "Ranks that share what --sharding divides: all of one model's.", unlisted());
    v("data-parallel-degree", data_degree, "Copies of those: 1.", unlisted());
  }
  void validate(Problems&) const;
  /// Checks --sharding-parallel-degree for a run with this many data-parallel ranks.
  void check_sharding(int data_ranks, Problems&) const;

  /// The folder for TensorBoard's files if the run writes to `output`; empty if the run writes none.
  std::string tensorboard(const std::string& output) const;
  /// Whether VisualDL's logs were requested; TensorBoard's are written instead.
  bool wants_visualdl() const;
};

/// Options of run_pretrain.py that are not just aliases of our options, since they have rules of their own.
struct PaddleConfig : PaddleNames {
  std::string model;  // gives the model's shape, the tokenizer and, with continue_training, the weights
  std::optional<bool> continue_training;  // unset: false
  std::string input_dir, output_dir, resume_from;
  std::optional<bool> do_train, do_eval, do_predict;
  std::optional<int> eval_batch;  // samples per rank in one batch of an evaluation
  bool disable_tqdm = false;

  template <class V>
  void fields(V&& v) {
    v("model-name-or-path", model,
      "Take the model's shape from here: a Hugging Face folder, the id of a model that was downloaded from "
      "the hub before, or a checkpoint of Megatron-LM or our own; also its tokenizer, unless one is given.",
      metavar("DIR"));
    v("continue-training", continue_training, "Start from the weights of --model-name-or-path.");
    v("input-dir", input_dir,
      "Folder of one dataset: an indexed one, or PaddleNLP's NAME_ids.npy and NAME_idx.npz.", metavar("DIR"));
    v("output-dir", output_dir,
      "As --save; without --overwrite-output-dir a run resumes from its newest checkpoint.", metavar("DIR"));
    v("do-train", do_train, "Train; the run then evaluates only with --do-eval.");
    v("do-eval", do_eval,
      "Evaluate every --eval-interval steps and at the end; without --do-train only evaluate.");
    v("do-predict", do_predict, "Evaluate on the test part at the end.", unlisted());
    v("per-device-eval-batch-size", eval_batch,
      "Samples that a rank adds to each batch of an evaluation: --eval-iters counts batches of as many.",
      at_least(1), unlisted());
    v("disable-tqdm", disable_tqdm, "Draw no progress line.");
    v("resume-from-checkpoint", resume_from,
      "Resume from this checkpoint, or from the newest one of this folder.", metavar("DIR"));
    PaddleNames::fields(v);
  }
  void validate(Problems&) const;
};

/// Settles training options that contradict each other here, but not in PaddleNLP: `recompute` false silences
/// its granularity, a warm-up in steps precedes a ratio, and a loss scale is for fp16 only. Call in
/// Options::derive().
void settle_paddle_training(TrainConfig&, Options&);

/// Sets PaddleNLP's initial loss scale for an fp16 run whose options name none. Call in Options::derive(),
/// after whatever sets another program's.
void take_paddle_loss_scale(TrainConfig&, const Options&);

/// Recognizes a file of PaddleNLP's run_dpo.py by its keys, and lets it learn preferences.
void translate_paddle_preferences(FileTranslation&);

/// Whether a command line, or a file as it was read, is for PaddleNLP's finetuning scripts: whether an option
/// has a name that only they give it.
bool is_of_paddle(std::span<const std::string> arguments);
bool is_of_paddle(const FileTranslation&);

extern template std::vector<Field> fields_of<PaddleNames>(PaddleNames&);

}  // namespace megalith
