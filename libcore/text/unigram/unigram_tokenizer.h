#pragma once

#include "libcore/text/model_tokenizer.h"
#include "libcore/text/unigram/unigram_model.h"
#include "libcore/text/unigram/unigram_worker.h"

namespace megalith {

/// A unigram model: cuts prepared texts into tokens (see UnigramRules). Does not look for added tokens.
using UnigramTokenizer = ModelTokenizer<UnigramModel>;

}  // namespace megalith
