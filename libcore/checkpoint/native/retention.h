#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace megalith {

/// The ending of hidden temporary names in a folder of checkpoints. If a process is killed, a later save
/// removes what was left under such names.
inline constexpr const char* kTemporaryEnd = ".tmp";

/// While this object lives, remove_old_checkpoints() does not remove the checkpoint in `folder`, neither in
/// this process nor in others. If the file system supports locks, this holds for processes on other machines,
/// too. Throws kComm if the checkpoint is being removed right now. Does nothing if the folder does not exist.
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
/// except the last keep - 1 of them. Never removes a checkpoint that the tracker names, that a CheckpointUse
/// holds, that is a link, or to which one of the paths `used` leads. Each checkpoint is first renamed to a
/// temporary name, so that a kill never leaves half a checkpoint under a checkpoint's name. Returns the
/// iterations that were removed; warns about those that cannot be removed.
std::vector<int64_t> remove_old_checkpoints(const std::string& root, int64_t newest, int keep,
                                            const std::vector<std::string>& used = {});

/// Megatron's --save-retain-interval: removes the checkpoint before `newest` (which the tracker already
/// names), unless its iteration is a multiple of `interval`. Keeps and returns what
/// remove_old_checkpoints() does.
std::vector<int64_t> remove_previous_checkpoint(const std::string& root, int64_t newest, int64_t interval,
                                                const std::vector<std::string>& used = {});

/// Removes the checkpoints below `root` whose iterations `gone` selects, for a run that replaces them, and
/// the links to such checkpoints. A tracker that names one of them is first set to the newest of the others,
/// or removed if there is none. Warns about those that cannot be removed, or that a CheckpointUse holds.
void remove_checkpoints(const std::string& root, const std::function<bool(int64_t iteration)>& gone);

}  // namespace megalith
