#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "libcore/text/tokenizer.h"

namespace megalith {

/// A SentencePiece model as the library of that name reads and encodes it, for the models that
/// read_sentencepiece_tokenizer() does not encode itself, and for tests. `bytes` is the contents of the file
/// `path`, `type` as in that function. The library is opened at the first call (base/plugins/plugin.h).
/// Throws kData; kDevice if the library is missing.
std::unique_ptr<Tokenizer> sentencepiece_library_tokenizer(const std::string& type, const std::string& path,
                                                           std::string_view bytes);

}  // namespace megalith
