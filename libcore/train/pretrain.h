#pragma once

#include "libcore/train/loop.h"

namespace megalith {

/// The whole of apps/pretrain: reads the tokenizer, opens and checks the data, trains. `config` is complete
/// but for the vocabulary's size, which comes from the tokenizer.
PretrainResult pretrain(PretrainConfig config);

}  // namespace megalith
