#pragma once

#include <string>
#include <string_view>

namespace megalith {

/// Keeps other processes from writing the same output. The lock is the kernel's (flock), so a killed process
/// holds none. The file that carries it, .NAME.lock beside `path`, is removed at the end; one that was left
/// behind is taken over, another user's too if it can be read. If the file system has no locks, nothing is
/// locked. Two paths of one folder, links followed, have one lock. The owner removes what killed writers of
/// this output left under the temporary names of AtomicFile and AtomicDirectory.
class LockFile {
 public:
  /// Takes the lock of the output `path`. kComm, which means try again, if another process has it; the
  /// message has its number and machine. kIo if the file cannot be created, is not a regular file (or is a
  /// link), or belongs to another user, who is then named, and cannot be read.
  explicit LockFile(const std::string& path);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  /// The same for another output that only the owner of this lock writes, such as a file in the folder.
  void remove_leftovers(const std::string& output) const;
  /// The same for all outputs in `folder` whose names begin so.
  void remove_leftovers_in(const std::string& folder, std::string_view begin) const;

 private:
  int open_file() const;
  bool try_lock(const std::string& output);
  void write_owner() const;
  std::string read_owner() const;

  std::string path_;
  int fd_ = -1;
  bool held_ = false;  // false if the file system has no locks
};

}  // namespace megalith
