#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libcore/io/files/file.h"
#include "libcore/launch/rank_place.h"
#include "libcore/parallel/communicator.h"

namespace megalith {

/// Where the ranks of a machine find the order of samples: one of them builds it, the others map its files.
/// The files are in --data-cache-path or, without it, in a temporary folder. Any rank of the machine removes
/// the temporary folder when it destroys its object, so that the folder does not stay when the rank that made
/// it is killed. All must have opened the files before the first object is destroyed.
class SharedIndexes {
 public:
  /// Collective over `ranks`; `places` holds each rank's place, `cache` is --data-cache-path or empty. kIo.
  SharedIndexes(Communicator& ranks, const std::vector<RankPlace>& places, const std::string& cache);
  ~SharedIndexes();
  SharedIndexes(const SharedIndexes&) = delete;
  SharedIndexes& operator=(const SharedIndexes&) = delete;

  /// Whether this rank builds the files.
  bool makes() const { return makes_; }
  /// Empty: the rank is alone on its machine, and its indexes stay in memory.
  const std::string& folder() const { return folder_; }

 private:
  bool makes_;
  std::optional<AtomicDirectory> own_;  // the builder's; never committed
  std::string folder_;
  std::string made_here_ = {};  // folder_ if it is a temporary folder of this machine, else empty
};

}  // namespace megalith
