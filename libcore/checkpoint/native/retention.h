#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace megalith {

/// Ends hidden names below a folder of checkpoints, so that a later save removes what a killed one left.
inline constexpr const char* kTemporaryEnd = ".tmp";

/// While it lives, remove_old_checkpoints() leaves this checkpoint alone, in this process and in others of
/// any machine whose file system knows locks. kComm when it is being removed just now. Nothing for a folder
/// that is not there.
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

/// Removes checkpoints below `root` that are older than `newest`, which the tracker names already, but for
/// the keep - 1 last of them. Never one that the tracker names, that a CheckpointUse holds, that is a link or
/// that one of `used` (paths) leads to. One is first renamed to what a later save removes, so that a kill
/// leaves no half checkpoint under a checkpoint's name. Returns the iterations that were removed; one that
/// cannot be is warned about.
std::vector<int64_t> remove_old_checkpoints(const std::string& root, int64_t newest, int keep,
                                            const std::vector<std::string>& used = {});

}  // namespace megalith
