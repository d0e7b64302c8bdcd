#include "libcore/io/ahead/decode_ahead.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/io/ahead/stream_source.h"

namespace megalith {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 18;
/// Chunks that the work which is read may have, however many wait: it must go on.
constexpr size_t kOwnChunks = 2;
/// The most that a piece may make whose bytes wait until it is whole. A block of bzip2 makes at most 900,000
/// bytes, unless it holds long runs.
constexpr uint64_t kMostUncertain = uint64_t{1} << 22;

}  // namespace

DecodeAhead::DecodeAhead(std::vector<std::string> paths, const AheadLimits& limits)
    : paths_(std::move(paths)), most_chunks_(limits.bytes / kChunkBytes) {
  try {
    for (size_t i = 0; i < limits.threads; ++i)
      threads_.emplace_back("a thread that decompresses inputs", [this] { serve(); });
  } catch (...) {  // the system has no more threads: those that run must end
    const Lock lock(mutex_);
    stopped_ = true;
    room_.notify_all();
    throw;
  }
}

DecodeAhead::~DecodeAhead() {
  {
    const Lock lock(mutex_);
    stopped_ = true;
    room_.notify_all();
  }
  threads_.clear();
}

uint64_t DecodeAhead::memory() const {
  const Lock lock(mutex_);
  uint64_t bytes = buffers_ * kChunkBytes;
  for (const WorkPointer& work : queue_) bytes += work->memory;
  return bytes;
}

// ---- the threads that decompress

void DecodeAhead::serve() {
  Lock lock(mutex_);
  for (;;) {
    room_.wait(lock, [this] {
      const bool room = queue_.empty() || waiting_ < most_chunks_;
      return stopped_ || planned_ == paths_.size() || (!planning_ && room);
    });
    if (stopped_ || planned_ == paths_.size()) return;
    const WorkPointer work = plan(lock);
    if (!work->done) decode(lock, *work);
  }
}

/// Adds the next work to the queue.
DecodeAhead::WorkPointer DecodeAhead::plan(Lock& lock) {
  planning_ = true;
  const size_t file = planned_;
  lock.unlock();
  WorkPointer work;
  try {
    work = next_work(file);
  } catch (...) {  // what is wrong with the file is found again when it is read as a whole
    work = std::make_shared<Work>();
    work->pieces = pieces_;
    work->done = work->ends_file = true;
    work->error = std::current_exception();
  }
  work->file = file;
  lock.lock();
  planning_ = false;
  queue_.push_back(work);
  if (work->ends_file) {
    pieces_.reset();
    ++planned_;
  }
  read_.notify_one();
  room_.notify_all();
  return work;
}

/// Called by one thread at a time, without the lock, which may take long: a file is searched for the next
/// piece.
DecodeAhead::WorkPointer DecodeAhead::next_work(size_t file) {
  if (!pieces_) pieces_ = pieces_of(paths_[file]);
  auto work = std::make_shared<Work>();
  work->pieces = pieces_;
  if (!pieces_) {
    work->ends_file = true;
    return work;
  }
  work->certain = !pieces_->is_certain_at_end_only();
  if (const auto piece = pieces_->next())
    work->piece = *piece;
  else
    work->done = work->ends_file = true;
  return work;
}

void DecodeAhead::decode(Lock& lock, Work& work) {
  lock.unlock();
  std::exception_ptr error;
  try {
    fill(work);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  work.error = error;
  work.memory = 0;
  work.done = true;
  if (work.dropped) release(work);
  read_.notify_one();
}

void DecodeAhead::fill(Work& work) {
  const std::unique_ptr<ByteSource> source =
      work.pieces ? work.pieces->open(work.piece) : std::make_unique<StreamSource>(paths_[work.file]);
  while (add_chunk(work, *source)) {
  }
}

/// Returns false if no other follows. The bytes before an error are kept.
bool DecodeAhead::add_chunk(Work& work, ByteSource& source) {
  std::optional<Chunk> chunk = empty_chunk(work);
  if (!chunk) return false;
  size_t last = 1;
  std::exception_ptr error;
  try {
    while (last > 0 && chunk->end < kChunkBytes) {
      last = source.read(chunk->bytes.data() + chunk->end, kChunkBytes - chunk->end);
      chunk->end += last;
    }
  } catch (...) {
    error = std::current_exception();
  }
  chunk->consumed = source.consumed();
  {
    const Lock lock(mutex_);
    work.made += chunk->end;
    work.memory = source.memory();
    if (chunk->end > 0) {
      work.chunks.push_back(std::move(*chunk));
    } else {
      give_back(std::move(chunk->bytes));
    }
    read_.notify_one();
    if (!work.certain && work.made > kMostUncertain) fail(ErrorKind::kData, "a piece makes too many bytes");
  }
  if (error) std::rethrow_exception(error);
  return last > 0;
}

/// Waits until the work may have another chunk; nothing if nobody will read it.
std::optional<DecodeAhead::Chunk> DecodeAhead::empty_chunk(const Work& work) {
  Lock lock(mutex_);
  room_.wait(lock, [&] { return stopped_ || work.dropped || may_add(work); });
  if (stopped_ || work.dropped) return std::nullopt;
  Chunk chunk;
  if (spare_.empty()) {
    ++buffers_;
    lock.unlock();
    chunk.bytes.resize(kChunkBytes);
    lock.lock();
  } else {
    chunk.bytes = std::move(spare_.back());
    spare_.pop_back();
  }
  ++waiting_;
  return chunk;
}

/// The first work of the queue may always go on; one whose bytes wait for its end must not wait itself.
bool DecodeAhead::may_add(const Work& work) const {
  if (waiting_ < most_chunks_) return true;
  return &work == queue_.front().get() && (!work.certain || work.chunks.size() < kOwnChunks);
}

// ---- the reader

void DecodeAhead::next_file() {
  if (!ended_ || opened_ == paths_.size())
    fail(ErrorKind::kInternal, "a file was begun although the one before it was not read to its end");
  ++opened_;
  ended_ = false;
  given_ = consumed_ = 0;
}

size_t DecodeAhead::read(char* out, size_t room) {
  if (whole_) return read_whole(out, room);
  Lock lock(mutex_);
  while (!ended_) {
    const auto readable = [](const Work& work) {
      return !work.chunks.empty() && (work.certain || (work.done && !work.error));
    };
    read_.wait(lock, [&] { return !queue_.empty() && (readable(*queue_.front()) || queue_.front()->done); });
    const WorkPointer work = queue_.front();
    if (readable(*work)) return take(*work, out, room);
    if (work->error) {
      try {
        std::rethrow_exception(work->error);
      } catch (const Error&) {
        if (!work->pieces) throw;
      }
      drop_pieces(lock);
      lock.unlock();
      whole_.emplace(paths_[opened_ - 1]);
      whole_->skip(given_);
      return read_whole(out, room);
    }
    ended_ = work->ends_file;
    queue_.pop_front();
    room_.notify_all();
  }
  return 0;
}

/// Called with the lock.
size_t DecodeAhead::take(Work& work, char* out, size_t room) {
  Chunk& chunk = work.chunks.front();
  const size_t bytes = std::min(room, chunk.end - chunk.begin);
  std::memcpy(out, chunk.bytes.data() + chunk.begin, bytes);
  chunk.begin += bytes;
  given_ += bytes;
  if (chunk.begin < chunk.end) return bytes;
  consumed_ = chunk.consumed;
  std::vector<char> buffer = std::move(chunk.bytes);
  work.chunks.pop_front();
  give_back(std::move(buffer));
  return bytes;
}

size_t DecodeAhead::read_whole(char* out, size_t room) {
  const size_t bytes = whole_->read(out, room);
  consumed_ = whole_->consumed();
  if (bytes > 0) return bytes;
  ended_ = true;
  whole_.reset();
  return 0;
}

/// Drops what is planned of the current file, and what would be.
void DecodeAhead::drop_pieces(Lock& lock) {
  read_.wait(lock, [this] { return !planning_; });
  const size_t file = opened_ - 1;
  for (; !queue_.empty() && queue_.front()->file == file; queue_.pop_front()) {
    queue_.front()->dropped = true;
    if (queue_.front()->done) release(*queue_.front());
  }
  if (planned_ == file) {
    pieces_.reset();
    ++planned_;
  }
  room_.notify_all();
}

/// Keeps the buffer of a chunk that is empty or was read. Wakes the threads that wait for room.
void DecodeAhead::give_back(std::vector<char>&& buffer) {
  spare_.push_back(std::move(buffer));
  if (waiting_-- >= most_chunks_) room_.notify_all();
}

/// Gives the buffers of a work back that nobody reads.
void DecodeAhead::release(Work& work) {
  for (Chunk& chunk : work.chunks) give_back(std::move(chunk.bytes));
  work.chunks.clear();
}

}  // namespace megalith
