#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/shards/shard.h"
#include "libcore/io/streams/text_reader.h"

namespace megalith {

/// Where shards are cut. kBytes: each gets about as many bytes, and a file that can be cut may belong to
/// several. kFiles: each gets whole files.
enum class ShardBy { kBytes, kFiles };

/// A file of the inputs, which is a regular one, or an object that a command reads.
struct PlannedFile {
  std::string path;
  uint64_t size = 0;    // in bytes
  bool object = false;  // it is not opened: its size, which is not known, counts as 1, and it is not cut
};

/// What a shard reads of one file.
struct ShardPart {
  size_t file = 0;  // its number among the files
  StreamPart part = {};
  uint64_t bytes = 0;  // about how many bytes of the file that is; exactly, unless the file is compressed
};

/// How the work on files is divided. The files' bytes, end to end, are cut at the multiples of 1/count; a cut
/// moves to the next place between two records (see record_behind()), or between two row groups of Parquet. A
/// file that cannot be cut (an array, one that is compressed and not told apart by a MemberIndex, a text that
/// is one document) belongs to the shard in which its middle lies. The division depends on the files' names,
/// sizes and bytes only, so that processes on any machines that make this plan do all of the work, each part
/// of it once.
///
/// Files are opened only where a cut lies in them. A plan keeps the last two cuts that it found, those at
/// both ends of a shard, so threads must not share it.
class ShardPlan {
 public:
  /// `unit`: what the files consist of.
  ShardPlan(std::vector<PlannedFile> files, TextUnit unit, int64_t count, ShardBy by);

  int64_t count() const { return count_; }
  /// A hash of what the division depends on, but for the files' bytes. Of a path it takes what comes after
  /// the folder that all files have in common, as machines may have mounted it under different names.
  std::string digest() const;
  /// The place where the shard `index` begins, or where the last one ends (`index` = count()).
  ShardEdge edge(int64_t index) const;
  /// A hash of the first and last bytes of what the shard reads of each file: whether it is still the same,
  /// in place of times, which differ between machines.
  std::string content(const std::vector<ShardPart>& parts) const;
  /// What the shard reads, in order. Files of which it reads nothing are left out, but not empty files.
  std::vector<ShardPart> parts(int64_t index) const;

 private:
  struct Cut {
    size_t file = 0;
    StreamPlace place = {};  // in that file
  };
  const Cut& cut(int64_t index) const;  // valid until cut() of another number with its parity
  Cut find_cut(int64_t index) const;
  Cut cut_in(size_t file, uint64_t byte) const;
  Cut around(size_t file, uint64_t byte) const;

  std::vector<PlannedFile> files_;
  std::vector<uint64_t> begins_;  // for each file, the bytes of those before it; at last the sum
  TextUnit unit_;
  int64_t count_;
  ShardBy by_;
  mutable std::array<std::optional<std::pair<int64_t, Cut>>, 2> found_ = {};  // with their numbers
};

}  // namespace megalith
