#pragma once

#include <string>

namespace megalith {

/// Keeps other processes from writing the same output. The lock is the kernel's (flock), so a killed process
/// holds none; the file that carries it, .NAME.lock beside `path`, is removed at the end, and one that was
/// left behind is taken over, another user's too where it may be read. Where the file system knows no locks,
/// there is none.
class LockFile {
 public:
  /// Takes the lock of the output `path`. kIo when another process has it, or the file cannot be made or is
  /// another user's that cannot be read (whose name is then told).
  explicit LockFile(const std::string& path);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

 private:
  int open_file() const;
  bool try_lock(const std::string& output);

  std::string path_;
  int fd_ = -1;
};

}  // namespace megalith
