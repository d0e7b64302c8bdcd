#pragma once

#include <string>
#include <vector>

#include "libcore/generate/run_generate.h"

namespace megalith {

/// The texts to continue: from the options, the file or stdin, whose final newline is dropped. kUsage if
/// stdin is used and empty (in an option or a line, a prompt may be empty); kNoInput, kIo; kData for a file
/// without lines, for lines that are not JSON with a "prompt", and for bytes that are not UTF-8.
std::vector<std::string> read_prompts(const PromptOptions&);

/// The whole content of a file, or of stdin for "-", decompressed if necessary. kNoInput, kIo; kData for more
/// than 256 MiB (such as from an endless device), and for content that does not match a compressed file's
/// name.
std::string read_text(const std::string& path);

}  // namespace megalith
