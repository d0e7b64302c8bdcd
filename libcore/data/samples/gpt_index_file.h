#pragma once

#include <string>

#include "libcore/data/samples/gpt_dataset.h"

namespace megalith {

/// build_gpt_index(), kept in `folder` (created if needed) between runs and for the other ranks of a machine,
/// which map the same file. Its name is a SHA-256 of what determines the index: the dataset's files (path,
/// size, time) and the spec. A damaged file is made again, with a warning; failing to write one is not an
/// error. Nothing is kept in a folder where others may write (see CachedFile); a warning says so. Throws what
/// build_gpt_index() throws.
GptIndex kept_gpt_index(const IndexedDataset& data, const GptSpec& spec, const std::string& folder);

}  // namespace megalith
