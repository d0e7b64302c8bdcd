#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace megalith {

class DirectWriter;
class ReadableFile;

/// Bytes of one call of write: on ext4 with large folios (Linux 6.18) calls of 128 KiB and more cost three to
/// five times the system time of calls up to 96 KiB.
constexpr size_t kWritePiece = size_t{1} << 16;

/// Writes an open file: appends, gathers small writes, and by default uses the page cache. Its name is
/// AtomicFile's concern. Throws kIo with the path and the system's reason.
class FileWriter {
 public:
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// Both are called before the first write. For files that may be large: the system is asked to write back
  /// each 8 MiB that were appended, so that a sync has less to wait for.
  void write_back_early() { stream_ = Stream::kWriteBack; }
  /// For files that are only appended to and not read soon: once the file has `from` bytes, it is written
  /// around the page cache (see DirectWriter) or, if that is impossible, written back early. If `from` is at
  /// most kWaiting, the bytes before it wait in memory and none goes through the cache. (A writer costs a
  /// thread and a large page of memory, whose first touch takes as long as a few MiB through the cache.)
  void stream_to_disk(uint64_t from = kWaiting) {
    stream_ = Stream::kAroundCache;
    direct_from_ = from;
  }
  static constexpr size_t kWaiting = size_t{1} << 17;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void write_at(uint64_t offset, const void* data, size_t bytes);  // over bytes that were appended
  /// Appends bytes [offset, offset + bytes) of another file inside the kernel; see copy_to_end().
  void append(const ReadableFile& source, uint64_t offset, uint64_t bytes,
              const std::function<void(uint64_t)>& progress = {});
  /// Fills all of [out, out + bytes) with bytes written at `offset`.
  void read_back(uint64_t offset, void* out, size_t bytes);
  uint64_t size() const { return size_; }  // bytes appended so far
  void flush();
  void sync();  // what was written survives a power failure
  /// sync() in two steps, so that the disk can work for several files at once: the first starts what the
  /// second waits for, and is optional. Nothing may be written after the first.
  void start_sync();
  void finish_sync();
  const std::string& path() const { return path_; }
  /// A path at which the file can be opened for reading, even while it has no name (after flush()).
  std::string open_path() const;

 protected:
  /// Takes over `fd`, which is open for reading and writing, at the end of `size` bytes.
  FileWriter(int fd, std::string path, uint64_t size);
  ~FileWriter();  // closes it; bytes that were not flushed are lost
  /// Whether it could be closed; if not, errno says why.
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
