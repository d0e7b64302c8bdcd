#pragma once

#include <string>

#include "libcore/data/samples/gpt_dataset.h"

namespace megalith {

/// build_gpt_index(), kept in `folder` (created) between runs and for the other ranks of a machine, which map
/// the same file. Its name is a SHA-256 of what the index follows from: the dataset's files (path, size,
/// time) and the spec. A file that is damaged is made again, with a warning; one that cannot be written is no
/// failure. Nothing is kept in a folder in which others may write (see CachedFile), with a warning. What
/// build_gpt_index() throws.
GptIndex kept_gpt_index(const IndexedDataset& data, const GptSpec& spec, const std::string& folder);

}  // namespace megalith
