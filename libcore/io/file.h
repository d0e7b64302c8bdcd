#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace megalith {

class DirectWriter;
class PendingFiles;

/// Bytes given to one call of write: on ext4 with large folios (Linux 6.18) calls of 128 KiB and more cost
/// three to five times the system time of those up to 96 KiB.
constexpr size_t kWritePiece = size_t{1} << 16;

/// What a touched byte of a mapped file brings into the process's memory (what the system has in its own of
/// the file): a large page of 2 MiB, or a few small ones. Large ones are for who reads all or much, small
/// ones for who looks at a few bytes here and there of a file of gigabytes. kAll: at once, for who reads a
/// small file from its beginning to its end.
enum class MappedPages { kLarge, kSmall, kAll };

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
  /// Gives the memory of bytes that were read back to the system; reading them again is allowed and reads the
  /// file again.
  void forget(size_t offset, size_t bytes) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// A file read at any place by calls, not by mapping: memory is the caller's buffer, and a file that is cut
/// meanwhile is an error, not a signal. kNoInput when it is not there or no regular file, kIo when it cannot
/// be read.
class ReadableFile {
 public:
  /// `writing`: the file may be one of these, which are still being written; then it is
  /// read behind their writer. They outlive this.
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
/// one where the file system knows no other way), then fsync and rename in commit(). Destroyed without
/// commit(): nothing is left. Throws kIo with the path and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  /// Written under the name partial_name(path), which is left when the object is destroyed without commit():
  /// so that a later object goes on behind its first `kept` bytes (also when commit() has given it its own
  /// name already). kData when there are fewer; kIo also when another process writes it.
  AtomicFile(std::string path, uint64_t kept);
  /// Whether that one takes the name of a committed file away.
  static bool takes_back(const std::string& path, uint64_t kept);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Both: before the first write. For files that may be large: the system is asked to bring each 8 MiB that
  /// were appended to the disk, so that commit() has less to wait for.
  void write_back_early() { stream_ = Stream::kWriteBack; }
  /// For those that are only appended to, and that nobody reads soon: once it has `from` bytes, the file is
  /// written around the page cache (see DirectWriter); where that cannot be, it is written back early. With
  /// at most kWaiting, the bytes before wait in memory and none goes through the cache. (A writer takes a
  /// thread and a large page of memory, whose first touch takes as long as a few MiB take through the cache.)
  void stream_to_disk(uint64_t from = kWaiting) {
    stream_ = Stream::kAroundCache;
    direct_from_ = from;
  }
  static constexpr size_t kWaiting = size_t{1} << 17;
  void write(const void* data, size_t bytes);  // buffered
  void write(std::string_view text) { write(text.data(), text.size()); }
  void write_at(uint64_t offset, const void* data,
                size_t bytes);  // over what was appended
  /// Appends bytes [offset, offset + bytes) of another file inside the kernel: shared with it where the file
  /// system can (XFS, btrfs), else copied there; through a buffer where the kernel cannot. kData when the
  /// source ends before. `progress` gets the bytes done so far, every 64 MiB or less.
  void append(const ReadableFile& source, uint64_t offset, uint64_t bytes,
              const std::function<void(uint64_t)>& progress = {});
  /// Fills all of [out, out + bytes) with what was written at `offset`.
  void read_back(uint64_t offset, void* out, size_t bytes);
  uint64_t size() const { return size_; }  // bytes appended so far
  void truncate(uint64_t size);            // takes back what was appended behind
  void flush();
  void sync();  // what was written survives a power failure
  /// Where the file can be opened for reading before it has its name (flush() first).
  std::string open_path() const;
  /// end(), place(), and the folder's entry survives a power failure too.
  void commit();

  /// commit() in steps, for who has several files. Nothing may be written after the first of them that is
  /// called: begin_end() begins what end() waits for and may be left out; after end() the file's bytes
  /// survive a power failure; place() gives it its name.
  void begin_end();
  void end();
  void place();
  const std::string& path() const { return path_; }
  static std::string partial_name(const std::string& path) { return path + ".partial"; }

 private:
  enum class Stream { kNo, kWriteBack, kAroundCache };
  void begin_stream();
  void leave_stream();
  void start_write_back(uint64_t least);

  std::string path_, temporary_, buffer_;
  int fd_ = -1;
  bool nameless_ = false;
  bool kept_ = false;  // the temporary file outlives the object
  Stream stream_ = Stream::kNo;
  uint64_t size_ = 0, written_back_ = 0, direct_from_ = 0;
  std::unique_ptr<DirectWriter> direct_;  // then buffer_ is empty
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
  /// Brings what is in the folder to the disk; commit() does too, but then has nothing left to wait for.
  void sync() const;
  void commit();

 private:
  std::filesystem::path target_, temporary_;
  bool committed_ = false;
};

std::string read_file(const std::string& path);                       // kNoInput, kIo
void write_file(const std::string& path, std::string_view contents);  // atomic
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

}  // namespace megalith
