#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace megalith {

/// Threads that read, in turns, what others replace meanwhile, and never wait. Who replaces something makes
/// it impossible to find, asks, and comes back when all turns have ended that had begun by then: nobody sees
/// it any more. So what a turn finds stays as it is until the turn ends.
///
/// A turn begins by storing and then reading, which x86-64 keeps in order only because the store is an
/// exchange; the C++ standard alone would not.
class PieceReaders {
 public:
  /// One thread's turns.
  class alignas(64) Reader {
   private:
    friend class PieceReaders;
    std::atomic<uint64_t> asked_{0};  // questions that had been asked when the turn began, and 1; 0: no turn
    std::unique_ptr<Reader> next_;    // which joined before
    bool free_ = false;
  };

  /// From its making to its end. A thread has one at a time, and a short one.
  class Turn {
   public:
    Turn(const PieceReaders& readers, Reader& reader) : reader_(reader) {
      reader.asked_.exchange(readers.asked_.load());
    }
    ~Turn() { reader_.asked_.store(0, std::memory_order_release); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Reader& reader_;
  };

  /// A question: which turns have begun?
  class Grace {
   public:
    /// Whether they have ended. Does not wait.
    bool over();

   private:
    friend class PieceReaders;
    uint64_t number_ = 0;
    const Reader* next_ = nullptr;  // whose turn may not have ended; none has of those that joined later
  };

  PieceReaders() = default;
  ~PieceReaders();
  PieceReaders(const PieceReaders&) = delete;
  PieceReaders& operator=(const PieceReaders&) = delete;

  /// A reader for the calling thread; lasts as long as this object, but belongs to another after leave().
  Reader& join();
  void leave(Reader& reader);

  Grace ask() const;

 private:
  mutable std::atomic<uint64_t> asked_{1};
  std::atomic<Reader*> last_{nullptr};  // that joined
  std::mutex mutex_;                    // of those who join and leave
};

}  // namespace megalith
