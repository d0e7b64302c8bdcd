#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

class DirectWriter;
class ReadableFile;

/// The largest number of bytes in one call of write(2). On ext4 with large folios (Linux 6.18), calls of 128
/// KiB or more take three to five times as much system time for the same bytes as calls of up to 96 KiB.
constexpr size_t kWritePiece = size_t{1} << 16;

/// Writes an open file by appending. Small writes are gathered in a buffer; by default they go through the
/// page cache. AtomicFile creates and names the file. Throws kIo with the path and the system's reason.
class FileWriter {
 public:
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// For files that may be large: asks the system to write back after every 8 MiB, so that a sync has less to
  /// wait for. Must be called before the first write, like stream_to_disk().
  void write_back_early() { stream_ = Stream::kWriteBack; }
  /// For files that are only appended to and not read soon. Once the file has `from` bytes, it is written
  /// around the page cache (see DirectWriter) or, if that is impossible, written back early. If `from` is at
  /// most kWaiting, the first `from` bytes wait in memory, so that no byte goes through the page cache.
  /// (Small files should not use DirectWriter, which needs a thread and a large page of memory: touching that
  /// page for the first time takes as long as writing a few MiB through the cache.)
  void stream_to_disk(uint64_t from = kWaiting) {
    stream_ = Stream::kAroundCache;
    direct_from_ = from;
  }
  static constexpr size_t kWaiting = size_t{1} << 17;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void write_at(uint64_t offset, const void* data, size_t bytes);  // overwrites bytes that were appended
  /// Appends bytes [offset, offset + bytes) of another file, copied inside the kernel. `progress`: see
  /// copy_to_end().
  void append(const ReadableFile& source, uint64_t offset, uint64_t bytes,
              const std::function<void(uint64_t)>& progress = {});
  /// All bytes of the file `path`, which are `bytes`, to be placed at `offset` of what fill() adds.
  struct Piece {
    std::string path;
    uint64_t offset, bytes;
  };
  /// Appends files, which follow each other without gaps, copied by several threads, each of which writes at
  /// its own place. `progress` is called by all of them, with the number of a piece and of the bytes that
  /// were copied since the last call. kData if a file is not as long as its piece says.
  void fill(const std::vector<Piece>& pieces, size_t threads,
            const std::function<void(size_t piece, uint64_t bytes)>& progress);
  /// Reads `bytes` bytes from `offset` on into `out`; they must have been written before.
  void read_back(uint64_t offset, void* out, size_t bytes);
  uint64_t size() const { return size_; }  // bytes appended so far
  void flush();
  void sync();  // all bytes written so far survive a power failure
  /// sync() in two steps, so that the disk can work on several files at once. start_sync(), which is
  /// optional, starts the sync; finish_sync() waits for its end. Nothing may be written after start_sync().
  void start_sync();
  void finish_sync();
  const std::string& path() const { return path_; }
  /// A path at which the file can be opened for reading, even while it has no name. Call flush() first.
  std::string open_path() const;

 protected:
  /// Takes ownership of `fd`, which must be open for reading and writing and positioned at the file's end,
  /// `size`.
  FileWriter(int fd, std::string path, uint64_t size);
  ~FileWriter();  // closes the file; bytes that were not flushed are lost
  /// Closes the file. On failure returns false; errno gives the reason.
  bool close();

 private:
  enum class Stream { kNo, kWriteBack, kAroundCache };
  void begin_stream();
  void leave_stream();
  void start_write_back(uint64_t min_bytes);

  int fd_;
  std::string path_, buffer_;
  Stream stream_ = Stream::kNo;
  uint64_t size_, written_back_ = 0, direct_from_ = 0;
  std::unique_ptr<DirectWriter> direct_;  // if set, buffer_ is empty
};

}  // namespace megalith
