#pragma once

#include <cstdint>

#include "libcore/data/samples/gpt_dataset.h"

namespace megalith {

/// Separates the documents of a sample by the token that ends each of them: writes out.starts, if wanted, and
/// with `mask_loss` takes the label after an end out of the loss, since it belongs to another document. The
/// end token belongs to the document that it ends (Megatron-LM's get_ltor_masks_and_position_ids with
/// reset_attention_mask, reset_position_ids and eod_mask_loss).
void mark_documents(const SampleView& out, int32_t eod, bool mask_loss);

}  // namespace megalith
