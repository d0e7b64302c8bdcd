#pragma once

#include <cstdint>

#include "libcore/data/samples/gpt_dataset.h"

namespace megalith {

/// Finds the documents of a sample: each ends with the token `eod`, which belongs to the document that it
/// ends. Writes where they begin to out.starts, unless that is empty. With `mask_loss`, sets the loss mask of
/// each `eod` token to 0, since its label belongs to the next document. Same result as Megatron-LM's
/// get_ltor_masks_and_position_ids with reset_attention_mask, reset_position_ids and eod_mask_loss.
void mark_documents(const SampleView& out, int32_t eod, bool mask_loss);

/// Whether documents of the dataset end with `eod`, as far as its first documents show. True if they hold no
/// token at all.
bool ends_documents(const IndexedDataset& data, int32_t eod);

}  // namespace megalith
