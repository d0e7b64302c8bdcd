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

/// Files of known sizes whose bytes come in any order, each once, and go around the page cache to the disk
/// (see DirectFile; through it where that is not known to be fast) by a thread of their own. A reader may
/// follow: it waits for bytes that are still to come and gets recent ones from the memory that the disk gets
/// them from. Files that it creates have their names from the beginning, because they are made in an
/// AtomicDirectory, which also syncs them. Throws kIo.
// NOLINTNEXTLINE(cppcoreguidelines-virtual-class-destructor): it is final
class PlacedFiles final : public PendingFiles {
 public:
  /// `memory`: bytes of buffers that are filled, written, and not yet read by the reader that follows.
  explicit PlacedFiles(size_t memory);
  ~PlacedFiles();
  PlacedFiles(const PlacedFiles&) = delete;  // what was not finished is lost
  PlacedFiles& operator=(const PlacedFiles&) = delete;

  /// A new file of `size` zeros; kIo when the disk has no room for it. Returns its number.
  size_t create(const std::string& path, uint64_t size);
  /// Adds a file that exists, is empty, and that only this writes; naming and syncing it stay the caller's.
  size_t fill(const AtomicFile& file, uint64_t size);
  /// Writes small parts at once, through the page cache; over others too.
  void put(size_t file, const std::vector<FilePart>& parts);

  /// The most bytes of a buffer.
  size_t max_bytes() const { return memory_.as<char>().size() / kBuffers - DirectFile::kBlock; }
  /// Memory for bytes [offset, offset + bytes) of a file, to be filled and then handed over with end(),
  /// before the next begin(). Waits until there is room: until buffers are written, and read by the reader,
  /// unless that waits itself.
  std::byte* begin(size_t file, uint64_t offset, size_t bytes);
  void end();
  /// Waits until all buffers are in their files. Rethrows what went wrong.
  void finish();

  /// What the reader, which must be one thread, holds from its beginning to its end.
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
  /// Nothing more will come: who waits gets an error.
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
    size_t unread;    // bytes, if somebody reads
    int readers = 0;  // that copy from it now
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
  std::deque<File> files_;         // places stay when more are created
  std::deque<Buffer> buffers_;     // in the order of memory_, which they use as a ring
  size_t head_ = 0;                // of memory_, where the next buffer may begin
  bool filling_ = false;           // the last one of buffers_ is not handed over yet
  bool reading_ = false, waiting_ = false, abandoned_ = false;
  std::deque<std::unique_ptr<OpenFile>> open_;  // the writing thread's
  SerialExecutor thread_;                       // its lock is for all above but open_
};

}  // namespace megalith
