#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "libcore/convert/output/conversion.h"
#include "libcore/convert/output/output.h"

namespace megalith {

/// Writes a .gguf file for llama.cpp: GPT-2, LLaMA and Qwen2. Matrices are written as `type`; if it is empty,
/// as they are stored. Norms, biases and positions, which llama.cpp needs in fp32, are fp32. The file
/// contains the tokenizer. `output` is a file name that ends in .gguf, or else a folder, in which model.gguf
/// is written.
OutputPlan plan_gguf(const Conversion& conversion, std::optional<Storage> type);
void export_gguf(const Conversion& conversion, const std::string& output, std::optional<Storage> type);
/// The file to write: `output` if it ends in .gguf, otherwise model.gguf in the folder `output`.
std::filesystem::path gguf_path(const std::string& output);

}  // namespace megalith
