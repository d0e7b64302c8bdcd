#include "libcore/doctor/disk_checks.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {
namespace fs = std::filesystem;
using State = Finding::State;

constexpr double kGiB = 1 << 30;
constexpr double kSeconds = 0.5;    // of writing
constexpr double kSlowRate = 20;    // writes a second that reach the disk
constexpr size_t kFirst = 1 << 20;  // bytes

Finding bad(const fs::path& folder, const char* what, const char* remedy) {
  return {.check = "disk",
          .state = State::kBad,
          .text = concat(folder.string(), ": ", what, ": ", std::strerror(errno)),
          .remedy = remedy};
}

/// A file of the folder that is removed at the end.
class ProbeFile {
 public:
  explicit ProbeFile(const fs::path& folder)
      : path_((folder / concat(".megalith-doctor-", ::getpid())).string()),
        descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {}
  ~ProbeFile() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    ::unlink(path_.c_str());
  }
  ProbeFile(const ProbeFile&) = delete;
  ProbeFile& operator=(const ProbeFile&) = delete;

  int descriptor() const { return descriptor_; }
  /// Writes to the disk; false, with errno, if it refuses.
  bool write(size_t bytes) const {
    const std::string data(bytes, 'm');
    errno = ENOSPC;  // of a short write
    return ::pwrite(descriptor_, data.data(), bytes, 0) == static_cast<ssize_t>(bytes) &&
           ::fsync(descriptor_) == 0;
  }

 private:
  std::string path_;
  int descriptor_;
};

Finding check_space(const fs::path& folder) {
  struct statvfs facts {};
  if (::statvfs(folder.c_str(), &facts) != 0) return bad(folder, "cannot be asked", "choose another --save");
  const double free = static_cast<double>(facts.f_bavail) * static_cast<double>(facts.f_frsize);
  return {.check = "disk",
          .state = free < kGiB ? State::kWarning : State::kGood,
          .text = concat(folder.string(), ": ", format_bytes(free), " are free"),
          .remedy = free < kGiB ? "remove files, or choose another --save" : ""};
}

Finding check_rate(const fs::path& folder, const ProbeFile& file) {
  int writes = 0;
  const auto began = std::chrono::steady_clock::now();
  for (; seconds_since(began) < kSeconds; ++writes)
    if (!file.write(4096)) return bad(folder, "cannot be written", "remove files, or choose another --save");
  const double rate = writes / seconds_since(began);
  return {.check = "disk",
          .state = rate < kSlowRate ? State::kWarning : State::kGood,
          .text = concat(folder.string(), ": ", format_fixed(rate, 0), " writes a second reach the disk"),
          .remedy = rate < kSlowRate ? "saves will be slow; choose a disk of this machine for --save" : ""};
}

Finding check_locks(const fs::path& folder, const ProbeFile& file) {
  const bool works = ::flock(file.descriptor(), LOCK_EX | LOCK_NB) == 0;
  return {.check = "disk",
          .state = works ? State::kGood : State::kWarning,
          .text = concat(folder.string(), works ? ": files can be locked" : ": files cannot be locked"),
          .remedy = works ? "" : "take care that no two runs save there, or mount it with locks"};
}

}  // namespace

std::string existing_folder(const std::string& folder) {
  std::error_code error;
  fs::path path = fs::absolute(folder, error).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "/a/" of "/a/."
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path.string();
}

Findings check_disk(const std::string& save) {
  const fs::path folder = existing_folder(save);
  Findings findings = {check_space(folder)};
  const ProbeFile file(folder);
  if (file.descriptor() < 0)
    findings.push_back(bad(folder, "no file can be made", "choose another --save, or change its owner"));
  else if (!file.write(kFirst))
    findings.push_back(bad(folder, "cannot be written", "remove files, or choose another --save"));
  else {
    findings.push_back(check_rate(folder, file));
    findings.push_back(check_locks(folder, file));
  }
  return findings;
}

}  // namespace megalith
