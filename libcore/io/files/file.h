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

/// What a touched byte of a mapped file brings into memory: a large page of 2 MiB, which is cheaper if all or
/// much of the file is read, or a few small ones, if single bytes of gigabytes are. kAll: everything at once,
/// for a small file that is read from beginning to end.
enum class MappedPages { kLarge, kSmall, kAll };

/// What an output may replace or write to.
enum class OutputKind {
  kFile,    // a file, or nothing yet
  kStream,  // also a device or a FIFO, which is written to and not replaced
};
/// What a file of this mode (of stat()) is, "a socket", if such an output must not replace it; empty if it
/// may.
std::string kind_that_is_not(OutputKind kind, uint32_t mode);
/// Opens a file to append to it, or creates it. Fails on a FIFO without a reader instead of waiting for one.
/// kIo.
int open_to_append(const std::string& path);

/// A file that is mapped read-only for the lifetime of the object. An empty file has size() == 0. Throws
/// kNoInput if it is not there (or is a directory), kIo if it cannot be read.
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
  /// Gives memory of bytes that were read back to the system, so that reading a large file does not fill the
  /// memory. The bytes may be read again, which reads the file again.
  void forget(size_t offset, size_t bytes) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  MappedRange range_;
};

/// A file that is read at any place by calls instead of mapping: the memory is the caller's buffer, and a
/// file that is cut in the meantime causes an error, not a signal. kNoInput if it is not there or is not a
/// regular file, kIo if it cannot be read.
class ReadableFile {
 public:
  /// `writing`: files that are still being written; if this is one of them, its bytes come from there as they
  /// are written. Must outlive this object.
  explicit ReadableFile(std::string path, PendingFiles* writing = nullptr);
  ~ReadableFile();
  ReadableFile(const ReadableFile&) = delete;
  ReadableFile& operator=(const ReadableFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // when it was opened
  int descriptor() const { return fd_; }
  /// Fills all of [out, out + bytes) from `offset`. kData when the file ends before.
  void read_at(uint64_t offset, void* out, size_t bytes) const;
  /// All bytes in order, in blocks of 64 KiB.
  void stream(const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
  PendingFiles* writing_;  // if not null, this is its file number_
  size_t number_ = 0;
};

/// A file that appears under its name only when it is complete: it is written beside that place without a
/// name (under a temporary one if the file system allows nothing else), then synced and renamed by commit().
/// If destroyed without commit(), nothing is left. FileWriter does the writing. Throws kIo with the path and
/// the system's reason, also if something that is not a file has the name. A device or FIFO, if allowed, is
/// written to at once.
class AtomicFile final : public FileWriter {
 public:
  explicit AtomicFile(std::string path, OutputKind kind = OutputKind::kFile)
      : AtomicFile(begin(std::move(path), kind)) {}
  /// Is written under the name partial_name(path), which stays if the object is destroyed without commit(),
  /// so that a later object can continue after its first `kept` bytes (also if commit() has already given the
  /// file its own name). kData if there are fewer; kIo also if another process writes it.
  AtomicFile(std::string path, uint64_t kept) : AtomicFile(resume(std::move(path), kept)) {}
  /// Whether the partial file takes away the name of a committed file.
  static bool takes_back(const std::string& path, uint64_t kept);
  ~AtomicFile();

  /// Gives the file its name; what was synced is then there. Nothing may be written afterwards.
  void publish();
  /// finish_sync() and publish(), and the folder's entry survives a power failure, too.
  void commit();
  static std::string partial_name(const std::string& path) { return path + ".partial"; }

 private:
  /// A file that is open for writing.
  struct Begun {
    std::string path = {}, temporary;
    int fd = -1;
    bool nameless = false;  // until it is published
    bool kept = false;      // the temporary file outlives the object
    bool stream = false;    // not a file: it already has its name
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
  /// Brings the folder's contents to the disk, so that commit(), which does so too, has nothing left to wait
  /// for.
  void sync() const;
  void commit();

 private:
  std::filesystem::path target_, temporary_;
  bool committed_ = false;
};

/// The text of a file that the user named, which may be a pipe. kNoInput, kIo; kData for more than a GiB (256
/// MiB if it is not a file).
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
/// Renames folder `from` to `to`. If `to` is a folder already, the two change places at once (so that `to` is
/// whole at any moment) and the old one is removed; on file systems that cannot do this it is moved aside
/// first. kIo with the reason.
void rename_directory(const std::filesystem::path& from, const std::filesystem::path& to);
void make_directories(const std::filesystem::path& folder);  // kIo; what it makes survives a power failure
void sync_file(const std::string& path);                   // the file's contents survive a power failure
void sync_directory(const std::filesystem::path& folder);  // fsync of the folder's entries
/// Removes a file, if it is there, so that it does not reappear after a power failure. kIo.
void remove_file(const std::string& path);

}  // namespace megalith
