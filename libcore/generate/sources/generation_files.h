#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/convert/sources/model_source.h"

namespace megalith {

/// The settings for generation in a model's folder.
struct GenerationFiles {
  std::vector<int32_t> end;   // ids that end a text: those of generation_config(), else the tokenizer's
  std::string chat_template;  // Jinja source; empty: none
  std::string template_file;  // the file of the template, for messages
  std::string bos_token, eos_token;  // texts of these tokens; empty: none
};

/// The chat template and the tokens' texts in a tokenizer's folder; `end` is empty. kData for files that are
/// not JSON.
GenerationFiles tokenizer_settings(const TokenizerFolder&);
/// Reads the settings. kData for files that are not JSON or contain ids beyond the model's vocabulary.
GenerationFiles generation_files(const ModelSource&, const Tokenizer&);

}  // namespace megalith
