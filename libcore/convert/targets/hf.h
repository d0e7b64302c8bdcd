#pragma once

#include <cstdint>
#include <string>

#include "libcore/convert/output/conversion.h"
#include "libcore/convert/output/output.h"

namespace megalith {

/// The files of a Hugging Face folder's weights, each of at most `max_shard` bytes (a tensor is never
/// divided).
OutputPlan plan_hf(const Conversion& conversion, uint64_t max_shard);
/// Writes the folder: config.json, generation_config.json, weights, the tokenizer's files and README.md.
/// Replaces an earlier export. Throws kUsage if the folder holds anything else.
void export_hf(const Conversion& conversion, const std::string& output, uint64_t max_shard = UINT64_MAX);

}  // namespace megalith
