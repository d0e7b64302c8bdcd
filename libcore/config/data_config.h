#pragma once

#include <string>
#include <vector>

#include "libcore/config/fields.h"

namespace megalith {

/// What is trained on. Names and defaults are Megatron's.
struct DataConfig {
  std::vector<std::string> data_path;  // PREFIX, or WEIGHT PREFIX WEIGHT PREFIX …, or PREFIX PREFIX …
  std::string split = "969, 30, 1";    // weights of train, valid, test
  std::string cache;                   // folder for what a scan of the ids found; empty: none
  bool reset_position_ids = false, reset_attention_mask = false, eod_mask_loss = false;
  /// Whether the documents of a sample are told apart, for which the end token must be known.
  bool marks_documents() const { return reset_position_ids || reset_attention_mask || eod_mask_loss; }
  // Represented so that they can be refused by name.
  std::string dataloader = "single";
  bool mock_data = false;

  template <class V>
  void fields(V&& v) {
    v("data-path", data_path, "Datasets: PREFIX, or WEIGHT PREFIX pairs to blend.", metavar("PREFIX"));
    v("split", split, "Weights of the train, valid and test parts.", metavar("A,B,C"));
    v("data-cache-path", cache, "Folder that keeps the result of a scan of the token ids between runs.",
      metavar("DIR"));
    v("dataloader-type", dataloader, "Only Megatron's order of samples, single, is supported.",
      one_of({"single"}), unlisted());
    v("reset-position-ids", reset_position_ids,
      "Count positions anew in each document of a sample; the tokenizer's end token ends one.");
    v("reset-attention-mask", reset_attention_mask, "Let a token see its own document of a sample only.");
    v("eod-mask-loss", eod_mask_loss, "Leave the token behind an end token out of the loss.");
    v("mock-data", mock_data, "Refused: give --data-path.", unlisted());
  }
  void validate(Problems&) const;
};

}  // namespace megalith
