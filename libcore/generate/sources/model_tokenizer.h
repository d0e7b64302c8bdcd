#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "libcore/convert/sources/model_source.h"

namespace megalith {

/// The model's tokenizer; `special_tokens`: with the ids that it puts around a text, such as <s>. kUsage if
/// the model came without one.
std::unique_ptr<Tokenizer> model_tokenizer(const ModelSource&, bool special_tokens);

/// Throws kData if ids are beyond a model's vocabulary. `tokenizer`: what gave them, for the message.
void check_ids(std::span<const int32_t> ids, int64_t vocabulary, std::string_view tokenizer);

}  // namespace megalith
