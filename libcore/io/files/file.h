#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "libcore/io/files/file_writer.h"
#include "libcore/io/files/mapped_ranges.h"

namespace megalith {

class PendingFiles;

/// How a mapped file is loaded into memory. kLarge: reading a byte loads a large page of 2 MiB, which is
/// cheaper if most of the file is read. kSmall: it loads a few small pages, for single bytes of a file of
/// gigabytes. kAll: the whole file is loaded at once, for a small file that is read from beginning to end.
enum class MappedPages { kLarge, kSmall, kAll };

/// What may already exist under the name of an output.
enum class OutputKind {
  kFile,    // a regular file, which is replaced, or nothing
  kStream,  // as kFile, or a device or FIFO, which is written to, not replaced
};
/// If an output of this kind must not replace or write a file with this `mode` (st_mode of stat()), the kind
/// of that file for a message: "a socket". Empty if it may.
std::string kind_that_is_not(OutputKind kind, uint32_t mode);
/// Opens a file for appending; creates it if it does not exist. On a FIFO without a reader, fails instead of
/// waiting for one. kIo.
int open_to_append(const std::string& path);

/// A file that is mapped read-only for the lifetime of the object. An empty file has size() == 0. Throws
/// kNoInput if the file does not exist or is a directory, kIo if it cannot be read.
class MappedFile {
 public:
  explicit MappedFile(std::string path, MappedPages pages = MappedPages::kLarge);
  ~MappedFile();
  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  /// Releases the memory that holds these bytes, so that reading a large file does not fill memory. The bytes
  /// stay readable: the system then loads them from the file again.
  void forget(size_t offset, size_t bytes) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  MappedRange range_;
};

/// A file that is read at any offset with system calls, not mapped. It needs no memory but the caller's
/// buffer, and if the file is truncated while in use, a read throws instead of raising a signal. kNoInput if
/// the file does not exist or is not a regular file, kIo if it cannot be read.
class ReadableFile {
 public:
  /// `writing`: files that are still being written, or null; must outlive this object. If `path` is one of
  /// them, reads wait until the bytes are written.
  explicit ReadableFile(std::string path, PendingFiles* writing = nullptr);
  ~ReadableFile();
  ReadableFile(const ReadableFile&) = delete;
  ReadableFile& operator=(const ReadableFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // in bytes, when the file was opened
  int descriptor() const { return fd_; }
  /// Reads `bytes` bytes from `offset` on into `out`. kData when the file ends before that.
  void read_at(uint64_t offset, void* out, size_t bytes) const;
  /// Passes all bytes to `take`, in order, in blocks of 64 KiB.
  void stream(const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
  PendingFiles* writing_;  // if not null, the file is number_ in it
  size_t number_ = 0;
};

/// A file that appears under its name only when it is complete. It is written in the same folder without a
/// name (or under a temporary name if the file system does not support that); commit() syncs it and gives it
/// its name. If the object is destroyed without commit(), nothing is left. FileWriter does the writing.
/// Throws kIo with the path and the system's reason, also if the name belongs to something that `kind` does
/// not allow. A device or FIFO, if allowed, is written directly.
class AtomicFile final : public FileWriter {
 public:
  explicit AtomicFile(std::string path, OutputKind kind = OutputKind::kFile)
      : AtomicFile(begin(std::move(path), kind)) {}
  /// Continues a file that an interrupted run left, after its first `kept` bytes. The file is written as
  /// partial_name(path) and stays there if the object is destroyed without commit(). If commit() has already
  /// given it its own name, it is renamed back first. kData if it has fewer than `kept` bytes; kIo also if
  /// another process is writing it.
  AtomicFile(std::string path, uint64_t kept) : AtomicFile(resume(std::move(path), kept)) {}
  /// Whether AtomicFile(path, kept) would continue a committed file: `path` is renamed back to
  /// partial_name(path).
  static bool takes_back(const std::string& path, uint64_t kept);
  ~AtomicFile();

  /// Gives the file its name, without syncing. Nothing may be written afterwards.
  void publish();
  /// Calls finish_sync() and publish() and syncs the folder, so that the file's name survives a power
  /// failure, too.
  void commit();
  static std::string partial_name(const std::string& path) { return path + ".partial"; }

 private:
  /// A file that is open for writing.
  struct Begun {
    std::string path = {}, temporary;
    int fd = -1;
    bool nameless = false;  // the file has no name until publish()
    bool kept = false;      // the temporary file stays without commit()
    bool stream = false;    // a device or FIFO, written in place: there is nothing to rename
    uint64_t size = 0;
  };
  static Begun begin(std::string path, OutputKind kind);
  static Begun resume(std::string path, uint64_t size);
  explicit AtomicFile(Begun file);

  std::string temporary_;
  bool nameless_, kept_, published_ = false;
};

/// A folder that appears under its name only when it is complete. Files are created below path(); commit()
/// syncs them and renames the folder. commit() replaces an existing target folder (it is moved aside, then
/// removed). If destroyed without commit(), everything is removed.
class AtomicDirectory {
 public:
  explicit AtomicDirectory(std::filesystem::path target);
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  const std::filesystem::path& path() const { return temporary_; }
  /// Syncs the folder's contents to the disk. Optional: commit() does so as well, and then has nothing left
  /// to wait for.
  void sync() const;
  void commit();

 private:
  std::filesystem::path target_, temporary_;
  bool committed_ = false;
};

/// The text of a file that the user named, which may be a pipe. kNoInput, kIo; kData if there is more than 1
/// GiB (256 MiB for a pipe or device).
std::string read_file(const std::string& path);
/// The text of a file that one of our runs wrote. Anything but a regular file is rejected at once, so that no
/// call waits for a FIFO.
std::string read_own_file(const std::string& path);
void write_file(const std::string& path, std::string_view contents,
                OutputKind kind = OutputKind::kFile);  // atomic
/// The folder of `path`; "." if it names none.
std::filesystem::path parent_or_here(const std::filesystem::path& path);
bool file_exists(const std::string& path);
uint64_t file_size(const std::string& path);
/// Renames folder `from` to `to`. If `to` exists already, the two folders are exchanged atomically, so that
/// `to` is complete at any moment, and the old folder is removed. On file systems without atomic exchange,
/// the old folder is moved aside first. kIo with the reason.
void rename_directory(const std::filesystem::path& from, const std::filesystem::path& to);
void make_directories(const std::filesystem::path& folder);  // kIo; what it makes survives a power failure
void sync_file(const std::string& path);                     // the file's contents survive a power failure
void sync_directory(const std::filesystem::path& folder);    // fsync of the folder's entries
/// Removes a file, if it is there, so that it does not reappear after a power failure. kIo.
void remove_file(const std::string& path);

}  // namespace megalith
