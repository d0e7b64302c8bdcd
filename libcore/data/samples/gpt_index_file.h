#pragma once

#include <string>

#include "libcore/data/samples/gpt_dataset.h"

namespace megalith {

/// Returns what build_gpt_index() returns, and keeps it in a file in `folder` (created if needed) for later
/// runs and for the other ranks of a machine, which map the same file. The file's name is a SHA-256 of what
/// determines the index: the dataset's files (path, size, time) and the spec. A damaged file is rebuilt, with
/// a warning; failing to write the file is not an error. If others may write to the folder, nothing is kept,
/// and a warning says so (see CachedFile). Throws what build_gpt_index() throws.
GptIndex kept_gpt_index(const IndexedDataset& data, const GptSpec& spec, const std::string& folder);
/// Whether kept_gpt_index() finds that file, so that it builds nothing unless the file is damaged.
bool has_kept_gpt_index(const IndexedDataset& data, const GptSpec& spec, const std::string& folder);

}  // namespace megalith
