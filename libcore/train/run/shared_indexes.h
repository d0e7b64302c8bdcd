#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libcore/io/files/file.h"
#include "libcore/launch/rank_place.h"
#include "libcore/parallel/communicator.h"

namespace megalith {

/// Where the ranks of a machine find the order of samples: one of them makes it, the others map its files.
/// They lie in --data-cache-path, or in a temporary folder that is removed with this object.
class SharedIndexes {
 public:
  /// Collective over `ranks`; `places` has each one's, `cache` is --data-cache-path or empty. kIo.
  SharedIndexes(Communicator& ranks, const std::vector<RankPlace>& places, const std::string& cache);

  /// Whether this rank makes the files.
  bool makes() const { return makes_; }
  /// Empty: the rank is alone on its machine, and its indexes stay in memory.
  const std::string& folder() const { return folder_; }

 private:
  bool makes_;
  std::optional<AtomicDirectory> own_;  // the maker's; it is never committed
  std::string folder_;
};

}  // namespace megalith
