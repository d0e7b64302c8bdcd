#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libcore/data/indexed/index_check.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/merge/merge.h"

/// Which datasets are joined. Only for merge.cpp.
namespace megalith {

/// A dataset to be joined; its arrays are not read yet.
struct MergeSource {
  std::string prefix;
  IndexHeader header = {};
  uint64_t bin_size = 0;
  std::optional<Sidecar> sidecar = {};  // only if its counts are this dataset's
};

/// The datasets of --input in order. All headers, sizes and sidecars are checked before the work begins: a
/// damaged file at the end of a list costs seconds, not hours. kUsage, kData, kNoInput.
std::vector<MergeSource> look_at_sources(const MergeConfig& config);

/// The joined dataset's type: that of all sources or, with `widen`, the smallest integer type that holds all
/// of theirs. kData if they differ (without `widen`), or one is a floating-point type.
IndexedDType joined_dtype(const std::vector<MergeSource>& sources, bool widen);

/// The joined dataset's sidecar as far as it follows from the sources', without counts and hashes; nothing if
/// a source has none. kData if tokenizers differ.
std::optional<Sidecar> joined_sidecar(const std::vector<MergeSource>& sources);

}  // namespace megalith
