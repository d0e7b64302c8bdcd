#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "libcore/io/ahead/file_pieces.h"
#include "libcore/io/streams/byte_source.h"
#include "libcore/io/streams/input_stream.h"
#include "libcore/threads/owned_thread.h"

namespace megalith {

struct AheadLimits {
  size_t threads = 1;
  uint64_t bytes = uint64_t{1} << 24;  // of memory for decompressed data that waits for the reader
};

/// Decompresses files in threads of its own, several files and several pieces of one (pieces_of()) side by
/// side, and gives their bytes in order: read() those of the current file. If a file's pieces are not what
/// they were taken for, the file is read again from its beginning, without what the reader has got already:
/// its bytes and errors are those of InputStream. Memory: AheadLimits::bytes, 512 KiB for each thread (of
/// bzip2 4 MiB), and the decoders.
///
/// read(), next_file() and consumed() are called by one thread at a time, memory() by any.
class DecodeAhead final : public ByteSource {
 public:
  /// Begins to decompress. Throws std::system_error if the system has no more threads.
  DecodeAhead(std::vector<std::string> paths, const AheadLimits& limits);
  ~DecodeAhead() override;  // tells the threads to stop, and waits for them
  DecodeAhead(const DecodeAhead&) = delete;
  DecodeAhead& operator=(const DecodeAhead&) = delete;

  /// Goes to the next file of `paths`, at first to the first one. The file before it was read to its end.
  void next_file();
  size_t read(char* out, size_t room) override;
  uint64_t consumed() const override { return consumed_; }
  uint64_t memory() const override;

 private:
  struct Chunk {
    std::vector<char> bytes;
    size_t begin = 0, end = 0;  // what is left of it
    uint64_t consumed = 0;      // bytes of the file up to its end
  };
  /// What one thread decompresses: a piece of a file, or all of it.
  struct Work {
    size_t file = 0;
    std::shared_ptr<FilePieces>
        pieces;  // shared with the planning of those that follow; null: the whole file
    FilePiece piece{};
    std::deque<Chunk> chunks;
    uint64_t made = 0, memory = 0;  // bytes that it gave; bytes that its decoder holds
    bool certain = true;            // whether its bytes may be read before it is done
    bool done = false, ends_file = false;
    bool dropped = false;           // nobody will read it
    std::exception_ptr error = {};  // what ended it; of a piece: the file must be read as a whole
  };
  // Shared by the queue and the thread that does it: the reader may drop it meanwhile.
  using WorkPointer = std::shared_ptr<Work>;
  using Lock = std::unique_lock<std::mutex>;

  void serve();
  WorkPointer plan(Lock& lock);
  WorkPointer next_work(size_t file);
  void decode(Lock& lock, Work& work);
  void fill(Work& work);
  bool add_chunk(Work& work, ByteSource& source);
  bool may_add(const Work& work) const;
  std::optional<Chunk> empty_chunk(const Work& work);
  size_t take(Work& work, char* out, size_t room);
  size_t read_whole(char* out, size_t room);
  void drop_pieces(Lock& lock);
  void give_back(std::vector<char>&& buffer);
  void release(Work& work);

  const std::vector<std::string> paths_;
  const uint64_t most_chunks_;           // that wait for the reader
  mutable std::mutex mutex_;             // guards what follows, up to the reader's own
  std::condition_variable read_, room_;  // the reader waits for the one, the threads for the other
  std::deque<WorkPointer> queue_;        // what was planned and not read to its end, in the order of the data
  std::shared_ptr<FilePieces> pieces_;   // of the file that is being planned, if it has any
  size_t planned_ = 0;                   // files of which all is planned
  bool planning_ = false, stopped_ = false;
  std::vector<std::vector<char>> spare_;
  uint64_t waiting_ = 0, buffers_ = 0;  // chunks in the queue; buffers that exist
  // the reader's own, of the current file
  size_t opened_ = 0;  // files that were begun: the current one is the last of them
  bool ended_ = true;
  uint64_t given_ = 0, consumed_ = 0;
  std::optional<InputStream> whole_;  // reads it from its beginning
  std::deque<OwnedThread> threads_;   // the last member: they use the others
};

}  // namespace megalith
