#pragma once

#include <string>
#include <vector>

#include "libcore/generate/run_generate.h"

namespace megalith {

/// The texts to continue: the options', the file's or stdin's, of which one newline at the end is left out.
/// kUsage when stdin, as the prompt, is empty (a prompt that an option or a line gives may be); kNoInput,
/// kIo; kData for a file without a line, for lines that are no JSON with a "prompt", and for bytes that are
/// no UTF-8.
std::vector<std::string> read_prompts(const PromptOptions&);

/// All of a file, or of stdin for "-", decompressed where it is compressed. kNoInput, kIo; kData for more
/// than 256 MiB, such as a device gives, and for a compressed name whose content is not.
std::string read_text(const std::string& path);

}  // namespace megalith
