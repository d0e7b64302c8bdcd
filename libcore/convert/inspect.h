#pragma once

#include <string>

#include "libcore/convert/output/output.h"
#include "libcore/convert/sources/megatron_source.h"
#include "libcore/json/json.h"

namespace megalith {

/// A plan as a table with the columns name, source, shape, type, bytes, and how the tensor is computed. Lines
/// are broken to fit in `columns` characters. If `columns` is 0, they are not broken.
std::string table_of(const OutputPlan& plan, size_t columns = 0);
Json json_of(const OutputPlan& plan);

/// The contents of a checkpoint of any readable kind, or of a .safetensors or .gguf file: its kind,
/// configuration, iteration and tensors.
Json inspect(const std::string& path, const SourceOptions& options = {});
std::string inspect_text(const Json& inspected, size_t columns = 0);  // lines are broken as in table_of()

}  // namespace megalith
