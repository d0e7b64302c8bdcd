#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libcore/io/files/file.h"
#include "libcore/launch/rank_place.h"
#include "libcore/parallel/communicator.h"

namespace megalith {

/// Lets the ranks of a machine share the files with the order of samples: one rank builds them, the others
/// map them. The files are in --data-cache-path or, without it, in a temporary folder. Every rank's
/// destructor removes the temporary folder, so that the folder disappears even when the rank that created it
/// is killed. All ranks must have opened the files before the first object is destroyed.
class SharedIndexes {
 public:
  /// Collective over `ranks`; `places` holds each rank's place, `cache` is --data-cache-path or empty. kIo.
  SharedIndexes(Communicator& ranks, const std::vector<RankPlace>& places, const std::string& cache);
  ~SharedIndexes();
  SharedIndexes(const SharedIndexes&) = delete;
  SharedIndexes& operator=(const SharedIndexes&) = delete;

  /// Whether this rank builds the files for its machine.
  bool makes() const { return makes_; }
  int maker() const { return maker_; }  // the rank that builds them
  /// The folder with the files. Empty: the rank is alone on its machine, and its indexes stay in memory.
  const std::string& folder() const { return folder_; }

 private:
  int maker_;
  bool makes_;
  std::optional<AtomicDirectory> own_;  // temporary folder of the rank that builds the files; never committed
  std::string folder_;
  std::string made_here_ = {};  // folder_ if it is a temporary folder of this machine, else empty
};

}  // namespace megalith
