#pragma once

#include "libcore/text/model_tokenizer.h"
#include "libcore/text/wordpiece/wordpiece_model.h"
#include "libcore/text/wordpiece/wordpiece_worker.h"

namespace megalith {

/// A WordPiece model: cuts prepared texts into tokens (see WordPieceRules). Does not look for added tokens.
using WordPieceTokenizer = ModelTokenizer<WordPieceModel>;

}  // namespace megalith
