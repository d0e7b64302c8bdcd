#pragma once

#include <string>
#include <string_view>

namespace megalith {

/// Keeps other processes from writing the same output. Locks the file .NAME.lock next to `path` with flock(),
/// so the kernel releases the lock of a killed process. The destructor removes the lock file; one that a
/// killed process left is reused, even another user's if it can be read. If the file system has no locks,
/// nothing is locked. Different paths to the same output (through links) share a lock. The owner of the lock
/// may remove temporary files that killed writers of this output left (see temporary_name()).
class LockFile {
 public:
  /// Locks the output `path`. If another process has locked it, throws kComm ("try again") with that
  /// process's number and machine. Throws kIo if the lock file cannot be created, is a link or not a regular
  /// file, or belongs to another user (whom the message names) and cannot be read.
  explicit LockFile(const std::string& path);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  /// False if the file system has no locks, so that other processes may write the output, too.
  bool held() const { return held_; }
  /// Throws kComm if another process has the lock: the server of a network file system may give it away when
  /// it has not heard of this machine for a while.
  void check() const;

  /// Removes temporary files that killed writers of `output` left. Only the owner of this lock may write
  /// `output`, which may be, for example, a file in the locked folder.
  void remove_leftovers(const std::string& output) const;
  /// Calls remove_leftovers() for all outputs in `folder` whose names begin with `begin`.
  void remove_leftovers_in(const std::string& folder, std::string_view begin) const;

 private:
  int open_file() const;
  bool try_lock(const std::string& output);
  [[noreturn]] void refuse_folder(const std::string& output) const;
  void write_owner() const;
  std::string read_owner() const;

  std::string path_;
  int fd_ = -1;
  bool held_ = false;  // false if the file system has no locks
};

}  // namespace megalith
