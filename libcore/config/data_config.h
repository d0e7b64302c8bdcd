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
  bool any_tokenizer = false;
  // Represented so that they can be refused by name.
  std::string dataloader = "single";
  bool reset_position_ids = false, reset_attention_mask = false, eod_mask_loss = false, mock_data = false;

  template <class V>
  void fields(V&& v) {
    v("data-path", data_path, "Datasets: PREFIX, or WEIGHT PREFIX pairs to blend.", metavar("PREFIX"));
    v("split", split, "Weights of the train, valid and test parts.", metavar("A,B,C"));
    v("data-cache-path", cache, "Folder that keeps the result of a scan of the token ids between runs.",
      metavar("DIR"));
    v("allow-tokenizer-mismatch", any_tokenizer,
      "Train also on datasets that another tokenizer made, or several; then with a warning.");
    v("dataloader-type", dataloader, "Only Megatron's order of samples, single, is supported.",
      one_of({"single"}), unlisted());
    v("reset-position-ids", reset_position_ids, "Refused: documents of a sample are not told apart.",
      unlisted());
    v("reset-attention-mask", reset_attention_mask, "Refused: documents of a sample are not told apart.",
      unlisted());
    v("eod-mask-loss", eod_mask_loss, "Refused: every token counts in the loss.", unlisted());
    v("mock-data", mock_data, "Refused: give --data-path.", unlisted());
  }
  void validate(Problems&) const;
};

}  // namespace megalith
