#pragma once

#include <string>
#include <vector>

#include "libcore/config/fields.h"

namespace megalith {

/// What is trained on. Names and defaults are Megatron's.
struct DataConfig {
  std::vector<std::string> data_path;  // PREFIX, or WEIGHT PREFIX WEIGHT PREFIX …, or PREFIX PREFIX …
  std::vector<std::string> train_path, valid_path, test_path;  // in its place; each as data_path
  bool mock = false;                                           // in place of both: numbers that count up
  std::string split = "969, 30, 1";                            // weights of train, valid, test
  std::string cache;  // folder for what a scan of the ids found; empty: none
  // Represented so that they can be refused by name.
  std::string dataloader = "single";
  bool reset_position_ids = false, reset_attention_mask = false, eod_mask_loss = false;

  template <class V>
  void fields(V&& v) {
    v("data-path", data_path, "Datasets: PREFIX, or WEIGHT PREFIX pairs to blend.", metavar("PREFIX"));
    v("train-data-path", train_path, "Datasets to train on alone, as --data-path, which it replaces.",
      metavar("PREFIX"));
    v("valid-data-path", valid_path, "Datasets to validate with, beside --train-data-path.",
      metavar("PREFIX"));
    v("test-data-path", test_path, "Datasets to test with, beside --train-data-path.", metavar("PREFIX"));
    v("mock-data", mock, "Train on numbers that count up instead of a dataset, to try a run.");
    v("split", split, "Weights of the train, valid and test parts.", metavar("A,B,C"));
    v("data-cache-path", cache, "Folder that keeps the result of a scan of the token ids between runs.",
      metavar("DIR"));
    v("dataloader-type", dataloader, "Only Megatron's order of samples, single, is supported.",
      one_of({"single"}), unlisted());
    v("reset-position-ids", reset_position_ids, "Refused: documents of a sample are not told apart.",
      unlisted());
    v("reset-attention-mask", reset_attention_mask, "Refused: documents of a sample are not told apart.",
      unlisted());
    v("eod-mask-loss", eod_mask_loss, "Refused: every token counts in the loss.", unlisted());
  }
  void finish();
  void validate(Problems&) const;
  /// Whether train, valid and test have data paths of their own.
  bool has_own_paths() const { return !train_path.empty() || !valid_path.empty() || !test_path.empty(); }
};

}  // namespace megalith
