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

/// Files of known sizes whose bytes are written in any order, each once, around the page cache (see
/// DirectFile; through it where direct I/O is not known to be fast) by a thread of its own. A reader may
/// follow: it waits for bytes that are still to come and gets recent ones from the memory from which the disk
/// gets them. Files that it creates have their names from the beginning: they are made in an AtomicDirectory,
/// which also syncs them. Throws kIo.
// NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): it is final
class PlacedFiles final : public PendingFiles {
 public:
  /// `memory`: bytes of buffers that are being filled, being written, or not yet read by the reader that
  /// follows.
  explicit PlacedFiles(size_t memory);
  ~PlacedFiles();
  PlacedFiles(const PlacedFiles&) = delete;  // what was not finished is lost
  PlacedFiles& operator=(const PlacedFiles&) = delete;

  /// A new file of `size` zeros; kIo if the disk has no room for it. Returns its number.
  size_t create(const std::string& path, uint64_t size);
  /// Adds an existing empty file that only this object writes; the caller names and syncs it.
  size_t fill(const AtomicFile& file, uint64_t size);
  /// Writes small parts at once, through the page cache; they may overwrite others.
  void put(size_t file, const std::vector<FilePart>& parts);

  /// The largest possible buffer, in bytes.
  size_t max_bytes() const { return memory_.as<char>().size() / kBuffers - DirectFile::kBlock; }
  /// Memory for bytes [offset, offset + bytes) of a file. The caller fills it and hands it over with end()
  /// before the next begin(). Waits for room, that is until buffers are written and have been read by the
  /// reader, unless the reader itself waits.
  std::byte* begin(size_t file, uint64_t offset, size_t bytes);
  void end();
  /// Waits until all buffers are written. Rethrows what went wrong.
  void finish();

  /// Held by the reader, which must be one thread, from its beginning to its end.
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
  /// Nothing more will come: readers that wait get an error.
  void abandon();

 private:
  static constexpr size_t kBuffers = 3;  // at least so many fit

  struct File {
    std::string path;       // for messages
    std::string open_path;  // where it can be opened
    uint64_t device = 0, node = 0;
    std::map<uint64_t, uint64_t> there = {};  // first byte and end of what can be read
  };
  struct Buffer {
    size_t file;
    uint64_t offset;
    size_t bytes;
    size_t place;  // in memory_
    char* data;
    size_t unread;    // bytes, if there is a reader
    int readers = 0;  // copying from it now
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
  std::condition_variable bytes_;  // for the reader
  std::deque<File> files_;         // its elements do not move when files are added
  std::deque<Buffer> buffers_;     // in the order of memory_, which they use as a ring
  size_t head_ = 0;                // of memory_, where the next buffer may begin
  bool filling_ = false;           // the last of buffers_ is not handed over yet
  bool reading_ = false, waiting_ = false, abandoned_ = false;
  std::deque<std::unique_ptr<OpenFile>> open_;  // the writing thread's
  SerialExecutor thread_;                       // its lock guards everything above except open_
};

}  // namespace megalith
