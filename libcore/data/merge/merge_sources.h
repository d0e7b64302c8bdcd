#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libcore/data/indexed/index_check.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/merge/merge.h"

/// Finds and checks the datasets that a merge joins. Only for merge.cpp.
namespace megalith {

/// A dataset to be joined; its arrays are not read yet.
struct MergeSource {
  std::string prefix;
  IndexHeader header = {};
  uint64_t bin_size = 0;
  std::optional<Sidecar> sidecar = {};  // nothing if there is none, or if its counts do not match the dataset
};

/// The datasets that --input names, in the order in which they are joined. All headers, sizes and sidecars
/// are checked before the work begins, so that a damaged file at the end of a list costs seconds, not hours.
/// kUsage, kData, kNoInput.
std::vector<MergeSource> look_at_sources(const MergeConfig& config);

/// The token type of the joined dataset. Throws kData unless all sources have the same type. With `widen`,
/// they may have different integer types; the result is then the smallest integer type that holds all of
/// their ids.
IndexedDType joined_dtype(const std::vector<MergeSource>& sources, bool widen);

/// The sidecar of the joined dataset, without counts and hashes; nothing if a source has no sidecar. kData if
/// the sources' tokenizers differ.
std::optional<Sidecar> joined_sidecar(const std::vector<MergeSource>& sources);

}  // namespace megalith
