#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "libcore/convert/output/conversion.h"
#include "libcore/convert/output/output.h"

namespace megalith {

/// Writes a .gguf file for llama.cpp: GPT-2, LLaMA and Qwen2. Matrices have the type `type` (empty: as
/// stored); what llama.cpp needs in fp32 (norms, biases, positions) is fp32. The file contains the tokenizer.
/// `output` ends in .gguf, or is a folder for model.gguf.
OutputPlan plan_gguf(const Conversion& conversion, std::optional<Storage> type);
void export_gguf(const Conversion& conversion, const std::string& output, std::optional<Storage> type);
/// The file that `output` names: itself, or model.gguf in it.
std::filesystem::path gguf_path(const std::string& output);

}  // namespace megalith
