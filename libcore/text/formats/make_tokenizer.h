#pragma once

#include <memory>

#include "libcore/text/tokenizer.h"
#include "libcore/text/tokenizer_files.h"

namespace megalith {

/// Reads the files and makes the tokenizer. Throws kUsage for an unknown type (with the nearest known one) or
/// a missing option, kNoInput for a missing file, kData for a malformed file, and for a file of a checkpoint
/// that was changed since it was saved (text/saved_tokenizer.h).
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerFiles&);

}  // namespace megalith
