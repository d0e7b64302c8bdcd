#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/convert/sources/model_source.h"

namespace megalith {

/// What a model's folder says about generating with it, beyond the weights.
struct GenerationFiles {
  std::vector<int32_t> end;          // ids that end a text: generation_config()'s, else the tokenizer's
  std::string chat_template;         // Jinja source; empty: none
  std::string template_file;         // where it stands, for messages
  std::string bos_token, eos_token;  // as text; empty: none
};

/// kData for files that are no JSON or give ids that the model lacks.
GenerationFiles generation_files(const ModelSource&, const Tokenizer&);

}  // namespace megalith
