#pragma once

#include <string>
#include <string_view>

namespace megalith {

/// Keeps other processes from writing the same output. The lock is the kernel's (flock), so a killed process
/// holds none; the file that carries it, .NAME.lock beside `path`, is removed at the end, and one that was
/// left behind is taken over, another user's too where it may be read. Where the file system knows no locks,
/// there is none. Two paths of one folder, links followed, have one lock. Who has it removes what killed
/// writers of this output left under the temporary names of AtomicFile and AtomicDirectory.
class LockFile {
 public:
  /// Takes the lock of the output `path`. kComm, which says to try again, when another process has it, whose
  /// number and machine are then told; kIo when the file cannot be made, is no regular file (a link, too), or
  /// is another user's that cannot be read (whose name is then told).
  explicit LockFile(const std::string& path);
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  /// The same for another output, which only the owner of this lock writes: a file in the folder, say.
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
  bool held_ = false;  // no where the file system knows no locks
};

}  // namespace megalith
