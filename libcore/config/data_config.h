#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/config/fim_config.h"
#include "libcore/options/fields.h"

namespace megalith {

/// The training data. Names and defaults are Megatron's.
struct DataConfig {
  std::vector<std::string> data_path;  // PREFIX, or WEIGHT PREFIX WEIGHT PREFIX …, or PREFIX PREFIX …
  std::vector<std::string> train_path, valid_path, test_path;  // used instead of data_path, in the same form
  std::string args_file, split_args_file;  // files with the words of data_path, or of the three paths
  bool words_read = false;                 // read_words() has taken the words of a file; not an option
  std::optional<int64_t> stride;     // tokens from one sample of a text to the next; derived: seq_length
  bool mock = false;                 // trains on consecutive numbers instead of a dataset
  std::string split = "969, 30, 1";  // weights of the training, validation and test parts
  std::string cache;  // folder for the order of samples and the results of scanning the ids; empty: none
  bool any_tokenizer = false;
  bool reset_position_ids = false, reset_attention_mask = false, eod_mask_loss = false;
  /// Whether the documents of a sample are distinguished, which requires the end token.
  bool marks_documents() const { return reset_position_ids || reset_attention_mask || eod_mask_loss; }
  FimConfig fim;
  // Declared only so that it can be rejected by name.
  std::string dataloader = "single";

  template <class V>
  void fields(V&& v) {
    v("data-path", data_path, "Datasets: PREFIX, or WEIGHT PREFIX pairs to blend.", metavar("PREFIX"));
    v("train-data-path", train_path,
      "Datasets to train on, as for --data-path, which it replaces; or a folder of texts, or one text file, "
      "which need a tokenizer.",
      metavar("PREFIX"));
    v("valid-data-path", valid_path, "The same for validation, beside --train-data-path.", metavar("PREFIX"));
    v("test-data-path", test_path, "Datasets for the test, beside --train-data-path.", metavar("PREFIX"));
    v("data-args-path", args_file,
      "File with the words of --data-path. There, and in --data-path, each PREFIX may be followed by a "
      "budget "
      "of its own in place of a weight: tokens=5e9, or epochs=1.5.",
      metavar("FILE"));
    v("per-split-data-args-path", split_args_file,
      "JSON file with the words of --train-data-path, --valid-data-path and --test-data-path, as \"train\", "
      "\"valid\" and \"test\".",
      metavar("FILE"));
    v("stride", stride, "Tokens from the start of one sample of --train-data-path's texts to the next.",
      at_least(1), default_text("seq-length"));
    v("mock-data", mock, "Train on consecutive numbers instead of a dataset, to try a run.");
    v("split", split, "Weights of the training, validation and test parts.", metavar("A,B,C"));
    v("data-cache-path", cache,
      "Folder that keeps the order of samples, and the result of a scan of the token ids, between runs.",
      metavar("DIR"));
    v("allow-tokenizer-mismatch", any_tokenizer,
      "Accept datasets that another tokenizer made, or several tokenizers, with a warning.");
    v("dataloader-type", dataloader, "Only Megatron's order of samples, single, is supported.",
      one_of({"single"}), unlisted());
    v("reset-position-ids", reset_position_ids,
      "Restart positions in each document of a sample; the tokenizer's end token ends one.");
    v("reset-attention-mask", reset_attention_mask,
      "Let a token attend only to its own document of a sample.");
    v("eod-mask-loss", eod_mask_loss, "Exclude the token after an end token from the loss.");
    fim.fields(v);
  }
  void finish();
  /// Reads the files of --data-args-path and --per-split-data-args-path into the paths, unless the options
  /// contradict each other. kNoInput, kIo, kUsage.
  void read_words();
  void validate(Problems&) const;
  /// Whether train, valid and test have separate data paths.
  bool has_own_paths() const { return !train_path.empty() || !valid_path.empty() || !test_path.empty(); }
  /// Whether --train-data-path names a folder of texts or a text file.
  bool reads_texts() const;
};

extern template std::vector<Field> fields_of<DataConfig>(DataConfig&);

}  // namespace megalith
