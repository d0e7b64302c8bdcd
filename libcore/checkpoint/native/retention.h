#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace megalith {

/// Ends hidden names in a folder of checkpoints, so that a later save removes what a killed one left.
inline constexpr const char* kTemporaryEnd = ".tmp";

/// While it lives, remove_old_checkpoints() does not remove this checkpoint, neither in this process nor on
/// another machine if the file system supports locks. kComm if it is being removed right now. Does nothing if
/// the folder does not exist.
class CheckpointUse {
 public:
  explicit CheckpointUse(const std::string& folder);
  ~CheckpointUse();
  CheckpointUse(CheckpointUse&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  CheckpointUse(const CheckpointUse&) = delete;
  CheckpointUse& operator=(const CheckpointUse&) = delete;

 private:
  int fd_;
};

/// Removes the checkpoints below `root` that are older than `newest` (which the tracker already names),
/// except the last keep - 1 of them. Never removes one that the tracker names, that a CheckpointUse holds,
/// that is a link, or to which one of `used` (paths) leads. Each is first renamed to what a later save
/// removes, so that a kill never leaves half a checkpoint under a checkpoint's name. Returns the iterations
/// that were removed; warns about those that cannot be.
std::vector<int64_t> remove_old_checkpoints(const std::string& root, int64_t newest, int keep,
                                            const std::vector<std::string>& used = {});

}  // namespace megalith
