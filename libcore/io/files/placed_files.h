#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "libcore/base/machine/huge_pages.h"
#include "libcore/io/files/direct_file.h"
#include "libcore/io/files/file_part.h"
#include "libcore/io/files/pending_files.h"
#include "libcore/threads/serial_executor.h"

namespace megalith {

class AtomicFile;

/// Writes files of known sizes. Their bytes may come in any order, each once; a thread of its own writes them
/// around the page cache (see DirectFile, which uses the page cache where direct I/O is not known to be
/// fast). One reader may follow: it waits for bytes that are still to come, and gets recent bytes from the
/// buffers that are being written. Created files have their names from the beginning: create them in an
/// AtomicDirectory, which also syncs them. Throws kIo.
// NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): it is final
class PlacedFiles final : public PendingFiles {
 public:
  /// `memory`: the total size in bytes of all buffers that are being filled, being written, or not yet read
  /// by the reader.
  explicit PlacedFiles(size_t memory);
  ~PlacedFiles();
  PlacedFiles(const PlacedFiles&) = delete;  // the destructor loses bytes unless finish() has returned
  PlacedFiles& operator=(const PlacedFiles&) = delete;

  /// Creates a file of `size` zeros and returns its number. kIo if the disk has no room for it.
  size_t create(const std::string& path, uint64_t size);
  /// Adds an existing empty file, which only this object may write, and returns its number. The caller names
  /// and syncs it.
  size_t fill(const AtomicFile& file, uint64_t size);
  /// Writes small parts immediately, through the page cache. The parts may overwrite bytes that were written
  /// before.
  void put(size_t file, const std::vector<FilePart>& parts);

  /// The largest possible buffer, in bytes.
  size_t max_bytes() const { return memory_.as<char>().size() / kBuffers - DirectFile::kBlock; }
  /// Returns memory for bytes [offset, offset + bytes) of a file. The caller fills it and calls end() before
  /// the next begin(). If no memory is free, waits until a buffer has been written and read by the reader. If
  /// the reader itself is waiting for other bytes, unread buffers are reused, too.
  std::byte* begin(size_t file, uint64_t offset, size_t bytes);
  void end();
  /// Waits until all buffers are written. Rethrows the writing thread's error.
  void finish();

  /// The right to read: the reader holds one as long as it reads. There may be only one reader, and it must
  /// use one thread.
  class Reader {
   public:
    explicit Reader(PlacedFiles& files);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

   private:
    PlacedFiles& files_;
  };
  size_t find(int fd) const override;
  Served serve(size_t file, uint64_t offset, void* out, size_t bytes) override;
  /// Call this if no more bytes will be written: a waiting reader then gets an error.
  void abandon();

 private:
  static constexpr size_t kBuffers = 3;  // memory_ has room for at least this many buffers

  struct File {
    std::string path;       // for messages
    std::string open_path;  // a path at which the file can be opened
    uint64_t device = 0, node = 0;
    std::map<uint64_t, uint64_t> there = {};  // ranges that the file already holds: first byte -> end
  };
  struct Buffer {
    size_t file;
    uint64_t offset;
    size_t bytes;
    size_t place;  // offset of the buffer in memory_
    char* data;
    size_t unread;    // number of bytes that the reader has not read yet
    int readers = 0;  // number of calls that are copying from the buffer now
    bool written = false;
  };
  struct OpenFile;

  size_t add(int fd, File file, uint64_t size);
  bool make_room(size_t room);
  bool finds_room(size_t room);
  bool reader_is_stuck() const { return reading_ && waiting_; }
  Buffer* buffer_at(size_t file, uint64_t offset);
  static void note(File& file, uint64_t offset, uint64_t bytes);
  void wake_reader();
  OpenFile& opened(size_t file);

  HugePages memory_;
  std::condition_variable bytes_;  // wakes the waiting reader
  std::deque<File> files_;         // a deque, so that no element moves when files are added
  std::deque<Buffer> buffers_;     // oldest first; they use memory_ as a ring
  size_t head_ = 0;                // offset in memory_ at which the next buffer may begin
  bool filling_ = false;           // between begin() and end(): the last buffer is being filled
  bool reading_ = false, waiting_ = false, abandoned_ = false;
  std::deque<std::unique_ptr<OpenFile>> open_;  // only the writing thread uses it
  SerialExecutor thread_;  // the lock of its state() guards all members above except open_
};

}  // namespace megalith
