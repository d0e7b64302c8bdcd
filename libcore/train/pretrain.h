#pragma once

#include "libcore/train/loop.h"

namespace megalith {

/// The whole of apps/pretrain: reads the tokenizer, opens and checks the data, trains. `config` is complete
/// but for the vocabulary's size, which comes from the tokenizer. A stop that is asked for before the first
/// step ends it between two data sets, or else after that step.
PretrainResult pretrain(PretrainConfig config, const StopSignal& stop);

}  // namespace megalith
