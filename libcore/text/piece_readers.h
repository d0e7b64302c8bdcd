#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

namespace megalith {

/// Threads that read, in turns, what others replace meanwhile, and never wait. Who replaces something makes
/// it impossible to find, asks which turns have begun by then, and comes back when these have ended: nobody
/// sees it any more. So what a turn finds stays as it is until the turn ends.
class PieceReaders {
 public:
  /// One thread's turns; they are short.
  class alignas(64) Reader {
   public:
    /// All that is read in the turn is read after this.
    void begin_turn() { turns_.exchange(turns_.load(std::memory_order_relaxed) + 1); }
    void end_turn() { turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

   private:
    friend class PieceReaders;
    std::atomic<uint64_t> turns_{0};  // begun and ended: odd during a turn
  };

  /// Turns that had begun.
  class Grace {
   public:
    /// Whether they have ended. Does not wait.
    bool over();

   private:
    friend class PieceReaders;
    std::vector<std::pair<const Reader*, uint64_t>> begun_;
  };

  /// A reader for the calling thread; lasts as long as this object, but belongs to another after leave().
  Reader& join();
  void leave(Reader& reader);

  /// The turns that have begun and not ended, of all threads.
  void ask(Grace& grace) const;

 private:
  mutable std::mutex mutex_;
  std::deque<Reader> readers_;
  std::vector<Reader*> free_;
};

}  // namespace megalith
