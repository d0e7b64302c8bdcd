#pragma once

#include <string>

#include "libcore/convert/output/output.h"
#include "libcore/convert/sources/megatron_source.h"
#include "libcore/json/json.h"

namespace megalith {

/// A plan as a table: name, source, shape, type, bytes, how it comes about. Lines are broken to fit `columns`
/// characters; 0: they are as long as they need to be.
std::string table_of(const OutputPlan& plan, size_t columns = 0);
Json json_of(const OutputPlan& plan);

/// What stands in a checkpoint of any kind that can be read, a .safetensors or a .gguf file: its kind,
/// configuration, iteration and tensors.
Json inspect(const std::string& path, const SourceOptions& options = {});
std::string inspect_text(const Json& inspected, size_t columns = 0);  // as table_of()

}  // namespace megalith
