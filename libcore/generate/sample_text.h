#pragma once

#include <string>
#include <string_view>

#include "libcore/generate/sampling.h"
#include "libcore/model/stage.h"
#include "libcore/text/tokenizer.h"

namespace megalith {

/// Continues a text up to the tokenizer's eod token, for the log of a training run. Returns the text and its
/// continuation. An eod token replaces an empty prompt. A failed sample must not end a run, so if an Error
/// occurs, returns its message in brackets.
std::string sample_text(const Stage&, Stream&, const Tokenizer&, std::string_view prompt,
                        const SampleOptions&);

}  // namespace megalith
