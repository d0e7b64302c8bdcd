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

/// What a touched byte of a mapped file brings into the process's memory: a large page of 2 MiB, cheaper
/// where all or much of the file is read, or a few small ones, where a few bytes here and there of gigabytes
/// are looked at. kAll: at once, for a small file that is read from its beginning to its end.
enum class MappedPages { kLarge, kSmall, kAll };

/// What an output may replace or write to.
enum class OutputKind {
  kFile,    // a file, or nothing yet
  kStream,  // also a device or a FIFO, which is written to and stays
};
/// What the thing of this mode (of stat()) is, "a socket", when such an output must not replace it; empty: it
/// may.
std::string kind_that_is_not(OutputKind kind, uint32_t mode);
/// Opens what is there for writing at its end, or makes a file. Fails on a FIFO without a reader instead of
/// waiting for one. kIo.
int open_to_append(const std::string& path);

/// A file mapped read-only for the lifetime of the object. An empty file gives size() == 0. Throws kNoInput
/// when it is not there (or is a directory), kIo when it cannot be read.
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
  /// Gives the memory of bytes that were read back to the system, so that reading a large file does not fill
  /// the memory; reading them again is allowed and reads the file again.
  void forget(size_t offset, size_t bytes) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  MappedRange range_;
};

/// A file read at any place by calls, not by mapping: memory is the caller's buffer, and a file that is cut
/// meanwhile is an error, not a signal. kNoInput when it is not there or no regular file, kIo when it cannot
/// be read.
class ReadableFile {
 public:
  /// `writing`: the file may be one of these, which are still being written; then its bytes come from there
  /// as they are written. They outlive this.
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
  PendingFiles* writing_;  // not null: it is file number_ of them
  size_t number_ = 0;
};

/// A file that appears under its name only when complete: written beside it without a name (under a temporary
/// one where the file system knows no other way), then synced and renamed in commit(). Destroyed without
/// commit(): nothing is left. How it is written is FileWriter's. Throws kIo with the path and the system's
/// reason, also where something that is no file has that name. A device or FIFO is written to at once, when
/// it is asked for.
class AtomicFile final : public FileWriter {
 public:
  explicit AtomicFile(std::string path, OutputKind kind = OutputKind::kFile)
      : AtomicFile(begin(std::move(path), kind)) {}
  /// Written under the name partial_name(path), which is left when the object is destroyed without commit():
  /// so that a later object goes on after its first `kept` bytes (also when commit() has given it its own
  /// name already). kData when there are fewer; kIo also when another process writes it.
  AtomicFile(std::string path, uint64_t kept) : AtomicFile(go_on(std::move(path), kept)) {}
  /// Whether that one takes the name of a committed file away.
  static bool takes_back(const std::string& path, uint64_t kept);
  ~AtomicFile();

  /// Gives the file its name; what was synced is then there. Nothing may be written any more.
  void publish();
  /// finish_sync(), publish(), and the folder's entry survives a power failure too.
  void commit();
  static std::string partial_name(const std::string& path) { return path + ".partial"; }

 private:
  /// A file that was opened to be written.
  struct Begun {
    std::string path = {}, temporary;
    int fd = -1;
    bool nameless = false;  // until it is published
    bool kept = false;      // the temporary file outlives the object
    bool stream = false;    // no file: it has its name already
    uint64_t size = 0;
  };
  static Begun begin(std::string path, OutputKind kind);
  static Begun go_on(std::string path, uint64_t size);
  explicit AtomicFile(Begun file);

  std::string temporary_;
  bool nameless_, kept_, published_ = false;
};

/// A folder that appears under its name only when complete. Files are made below path(); commit() syncs them
/// and renames the folder. An existing target folder is replaced in commit() (moved aside, then removed).
/// Destroyed without commit(): removed.
class AtomicDirectory {
 public:
  explicit AtomicDirectory(std::filesystem::path target);
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  const std::filesystem::path& path() const { return temporary_; }
  /// Brings what is in the folder to the disk, so that commit(), which does it too, has nothing left to wait
  /// for.
  void sync() const;
  void commit();

 private:
  std::filesystem::path target_, temporary_;
  bool committed_ = false;
};

/// The text of a file that the user named, which may be a pipe too. kNoInput, kIo; kData for more than a GiB
/// (of what is no file: 256 MiB).
std::string read_file(const std::string& path);
/// The text of a file that a run of ours wrote. What is no regular file is rejected at once, so that nobody
/// waits for a FIFO.
std::string read_own_file(const std::string& path);
void write_file(const std::string& path, std::string_view contents,
                OutputKind kind = OutputKind::kFile);  // atomic
/// The folder of `path`, "." where it names none.
std::filesystem::path parent_or_here(const std::filesystem::path& path);
bool file_exists(const std::string& path);
uint64_t file_size(const std::string& path);
/// Renames folder `from` to `to`. Where `to` is a folder already, the two change places at once (so that `to`
/// is whole at any moment) and what was there is removed; file systems that cannot do this have it moved
/// aside first. kIo with the reason.
void rename_directory(const std::filesystem::path& from, const std::filesystem::path& to);
void make_directories(const std::filesystem::path& folder);  // kIo with the reason
void sync_file(const std::string& path);                     // what is in the file survives a power failure
void sync_directory(const std::filesystem::path& folder);    // fsync of the folder's entries
/// Removes a file, if it is there, so that it does not come back after a power failure. kIo.
void remove_file(const std::string& path);

}  // namespace megalith
