#include "libcore/checkpoint/native/retention.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

int open_folder(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

enum class Links { kTaken, kLeftOut };

/// The iterations of the checkpoint folders in `root`, in ascending order.
std::vector<int64_t> saved_iterations(const std::string& root, Links links = Links::kLeftOut) {
  std::vector<int64_t> found;
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    const bool taken = entry.is_symlink() ? links == Links::kTaken : entry.is_directory();
    if (!name.starts_with("iter_") || !taken) continue;
    const auto iteration = parse_int(std::string_view(name).substr(5));
    if (iteration && *iteration >= 0 && name == iteration_folder(*iteration)) found.push_back(*iteration);
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool same_folder(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

/// Locks a folder, so that no other process begins to use it.
class Lock {
 public:
  explicit Lock(const std::string& folder) : fd_(open_folder(folder)) {
    if (fd_ < 0) fail(ErrorKind::kIo, folder, ": cannot open: ", std::strerror(errno));
    used_ = ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  }
  ~Lock() { ::close(fd_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  bool is_used() const { return used_; }

 private:
  int fd_;
  bool used_ = false;
};

/// Removes a checkpoint. Returns false if a CheckpointUse holds it.
bool remove_checkpoint(const std::string& root, const std::string& name) {
  const std::string path = concat(root, "/", name),
                    hidden = concat(root, "/.", name, ".removed", kTemporaryEnd);
  const Lock lock(path);
  if (lock.is_used()) return false;
  std::error_code error;
  fs::remove_all(hidden, error);
  fs::rename(path, hidden, error);
  if (!error) sync_directory(root);  // so the name disappears before the contents do
  if (!error) fs::remove_all(hidden, error);
  if (error) fail(ErrorKind::kIo, path, ": cannot remove: ", error.message());
  return true;
}

/// Makes the tracker name the newest of the iterations `left`; if there is none, removes it. Does nothing if
/// it names another iteration than those in `gone`, or a release.
void turn_tracker(const std::string& root, const std::vector<int64_t>& gone,
                  const std::vector<int64_t>& left) {
  const std::string tracker = concat(root, "/", kTrackerFile);
  if (!file_exists(tracker)) return;
  const auto named = parse_int(trim(read_own_file(tracker)));
  if (!named || std::find(gone.begin(), gone.end(), *named) == gone.end()) return;
  left.empty() ? remove_file(tracker) : write_file(tracker, std::to_string(left.back()));
}

}  // namespace

CheckpointUse::CheckpointUse(const std::string& folder) : fd_(open_folder(folder)) {
  if (fd_ < 0 || ::flock(fd_, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(fd_);
  fail(ErrorKind::kComm, folder,
       ": is just being removed by the run that wrote it (--keep-last, --save-retain-interval); try again");
}

CheckpointUse::~CheckpointUse() {
  if (fd_ >= 0) ::close(fd_);
}

namespace {

/// The iterations of the checkpoints before `newest`, in ascending order.
std::vector<int64_t> saved_before(const std::string& root, int64_t newest) {
  std::vector<int64_t> old = saved_iterations(root);
  std::erase_if(old, [&](int64_t iteration) { return iteration >= newest; });
  return old;
}

/// Removes those of the checkpoints `old` that nothing protects.
std::vector<int64_t> remove_unprotected(const std::string& root, const std::vector<int64_t>& old,
                                        const std::vector<std::string>& used) {
  std::vector<int64_t> removed;
  const std::string latest = latest_checkpoint(root).value_or(std::string());
  for (const int64_t iteration : old) {
    const std::string name = iteration_folder(iteration), path = concat(root, "/", name);
    if (same_folder(path, latest) ||
        std::any_of(used.begin(), used.end(), [&](const std::string& u) { return same_folder(path, u); }))
      continue;
    try {
      if (remove_checkpoint(root, name))
        removed.push_back(iteration);
      else
        log("  kept ", path, ", which another process uses");
    } catch (const Error& error) {
      warn(error.what());
    }
  }
  return removed;
}

}  // namespace

std::vector<int64_t> remove_old_checkpoints(const std::string& root, int64_t newest, int keep,
                                            const std::vector<std::string>& used) {
  std::vector<int64_t> old = saved_before(root, newest);
  const auto kept = std::min(old.size(), static_cast<size_t>(std::max(keep - 1, 0)));
  old.resize(old.size() - kept);
  return remove_unprotected(root, old, used);
}

std::vector<int64_t> remove_previous_checkpoint(const std::string& root, int64_t newest, int64_t interval,
                                                const std::vector<std::string>& used) {
  const std::vector<int64_t> old = saved_before(root, newest);
  if (old.empty() || old.back() % interval == 0) return {};
  return remove_unprotected(root, {old.back()}, used);
}

void remove_checkpoints(const std::string& root, const std::function<bool(int64_t iteration)>& gone) {
  std::vector<int64_t> left = saved_iterations(root, Links::kTaken), going;
  const auto first = std::stable_partition(left.begin(), left.end(), std::not_fn(gone));
  going.assign(first, left.end());
  left.erase(first, left.end());
  turn_tracker(root, going, left);
  for (const int64_t iteration : going) {
    const std::string name = iteration_folder(iteration), path = concat(root, "/", name);
    try {
      if (fs::is_symlink(path))
        remove_file(path);
      else if (!remove_checkpoint(root, name))
        warn(path, ": was not removed: another process uses it");
    } catch (const Error& error) {
      warn(error.what());
    }
  }
}

}  // namespace megalith
