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

/// How the system loads a mapped file into memory. kLarge: each access loads a large page of 2 MiB, which is
/// cheaper if most of the file is read. kSmall: each access loads a few small pages; for reading single bytes
/// of a file of gigabytes. kAll: the whole file is loaded at once; for a small file that is read from
/// beginning to end.
enum class MappedPages { kLarge, kSmall, kAll };

/// What may exist under the name of an output before it is written.
enum class OutputKind {
  kFile,    // nothing, or a regular file, which is replaced
  kStream,  // as kFile, or a device or FIFO, which is written directly
};
/// Checks whether an output of this kind may replace or write a file with this `mode` (st_mode of stat()).
/// Returns an empty string if it may; otherwise what the file is, for a message: "a socket".
std::string kind_that_is_not(OutputKind kind, uint32_t mode);
/// Opens a file for appending; creates it if it does not exist. If the file is a FIFO without a reader, fails
/// instead of waiting for one. Throws kIo.
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
  /// Releases the memory that holds these bytes, so that a large file does not fill the memory. The bytes
  /// stay readable: the system loads them from the file again.
  void forget(size_t offset, size_t bytes) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  MappedRange range_;
};

/// A file that is not mapped but read with system calls, at any offset. It uses no memory except the caller's
/// buffer, and if the file is truncated meanwhile, a read throws instead of raising a signal. Throws kNoInput
/// if the file does not exist or is not a regular file, kIo if it cannot be read.
class ReadableFile {
 public:
  /// `writing`: files that are still being written, or null; it must outlive this object. If `path` is one of
  /// these files, reads wait until their bytes are written.
  explicit ReadableFile(std::string path, PendingFiles* writing = nullptr);
  ~ReadableFile();
  ReadableFile(const ReadableFile&) = delete;
  ReadableFile& operator=(const ReadableFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // in bytes, when the file was opened
  int descriptor() const { return fd_; }
  /// Reads `bytes` bytes from `offset` on into `out`. Throws kData if the file ends before that.
  void read_at(uint64_t offset, void* out, size_t bytes) const;
  /// Passes all bytes to `take`, in order, in blocks of 64 KiB.
  void stream(const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
  PendingFiles* writing_;  // if not null, this file has number_ there
  size_t number_ = 0;
};

/// A file that appears under its name only when it is complete. Until then it has no name, or a temporary one
/// in the same folder if the file system does not support nameless files. commit() syncs the file and gives
/// it its name; if the object is destroyed without commit(), nothing is left. A device or FIFO, if `kind`
/// allows it, is written directly. Writing is done by the base class. Throws kIo with the path and the
/// system's reason, also if something exists under the name that `kind` does not allow.
class AtomicFile final : public FileWriter {
 public:
  explicit AtomicFile(std::string path, OutputKind kind = OutputKind::kFile)
      : AtomicFile(begin(std::move(path), kind)) {}
  /// Continues a file that an interrupted run left, after its first `kept` bytes. Until commit() the file has
  /// the name partial_name(path), which it keeps if the object is destroyed without commit(). A file that
  /// commit() has already named is first renamed back. Throws kData if the file has fewer than `kept` bytes,
  /// and kIo also if another process is writing it.
  AtomicFile(std::string path, uint64_t kept) : AtomicFile(resume(std::move(path), kept)) {}
  /// Whether AtomicFile(path, kept) would continue a file that commit() has already named, by renaming it
  /// back to partial_name(path).
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
    std::string path = {}, temporary = {};  // `temporary` is empty while the file is nameless
    int fd = -1;
    bool nameless = false;  // the file gets its name only in publish()
    bool kept = false;      // the file stays if it is never committed
    bool stream = false;    // a device or FIFO: written directly, never renamed
    uint64_t size = 0;
  };
  static Begun begin(std::string path, OutputKind kind);
  static Begun resume(std::string path, uint64_t size);
  explicit AtomicFile(Begun file);

  std::string temporary_;  // empty while the file is nameless
  bool nameless_, kept_, published_ = false;
};

/// A folder that appears under its name only when it is complete. Create files below path(); commit() syncs
/// them and renames the folder. If the target folder exists already, commit() moves it aside, replaces it,
/// and removes it. If the object is destroyed without commit(), everything is removed.
class AtomicDirectory {
 public:
  explicit AtomicDirectory(std::filesystem::path target);
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  const std::filesystem::path& path() const { return temporary_; }
  /// Syncs the folder's contents to the disk. Optional: commit() syncs, too, and then has little left to wait
  /// for.
  void sync() const;
  void commit();

 private:
  std::filesystem::path target_, temporary_;
  bool committed_ = false;
};

/// The most bytes of a file that is read as a whole: settings, tokenizers, indexes.
inline constexpr uint64_t kMostWhole = uint64_t{1} << 30;
/// Throws kData if the file `path`, of `size` bytes, is too large to be read as a whole.
void require_whole(const std::string& path, uint64_t size);
/// Reads a text file that the user named, which may be a pipe. Throws kNoInput, kIo, and kData if it has more
/// than kMostWhole bytes (256 MiB for a pipe or device): at once, for a file.
std::string read_file(const std::string& path);
/// Reads a text file that one of our runs wrote. Rejects anything but a regular file at once, so that no call
/// waits for a FIFO.
std::string read_own_file(const std::string& path);
void write_file(const std::string& path, std::string_view contents,
                OutputKind kind = OutputKind::kFile);  // appears only when complete
/// The folder of `path`; "." if `path` names none.
std::filesystem::path parent_or_here(const std::filesystem::path& path);
bool file_exists(const std::string& path);
uint64_t file_size(const std::string& path);
/// Renames folder `from` to `to`. If `to` exists, exchanges the two folders atomically, so that `to` is
/// complete at any moment, and removes the old one. On file systems without atomic exchange, first moves the
/// old folder aside. Throws kIo with the reason.
void rename_directory(const std::filesystem::path& from, const std::filesystem::path& to);
void make_directories(const std::filesystem::path& folder);  // kIo; survives a power failure
void sync_file(const std::string& path);                     // so that its contents survive a power failure
void sync_directory(const std::filesystem::path& folder);    // so that its entries survive a power failure
/// Removes a file, if it exists, so that it does not reappear after a power failure. Throws kIo.
void remove_file(const std::string& path);

}  // namespace megalith
