#pragma once

#include <string>
#include <string_view>

namespace megalith {

/// Keeps other processes from writing the same output. The lock is the kernel's (flock), so a killed process
/// holds none. The lock is on the file .NAME.lock beside `path`, which the destructor removes. A lock file
/// that a killed process left behind is reused, even another user's if it can be read. If the file system has
/// no locks, nothing is locked. Different paths of the same folder (through links) have the same lock. The
/// owner of the lock removes temporary files that killed writers of this output left (see temporary_name()).
class LockFile {
 public:
  /// Takes the lock of the output `path`. If another process has it: kComm, which means try again, with that
  /// process's number and machine. kIo if the lock file cannot be created, is a link or not a regular file,
  /// or belongs to another user (whom the message names) and cannot be read.
  explicit LockFile(const std::string& path);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  /// Removes temporary files that killed writers of `output` left. Only the owner of this lock may write
  /// `output`, which may for instance be a file in the locked folder.
  void remove_leftovers(const std::string& output) const;
  /// remove_leftovers() for all outputs in `folder` whose names begin with `begin`.
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
