#pragma once

#include <array>
#include <atomic>
#include <cstddef>
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
    std::atomic<uint64_t> steps_{0};  // into a turn and out of it: odd while one lasts
    std::unique_ptr<Reader> next_;    // which joined before
    bool free_ = false;
  };

  /// From its making to its end. A thread has one at a time, and a short one.
  class Turn {
   public:
    explicit Turn(Reader& reader) : reader_(reader) { reader.steps_.exchange(next_step()); }
    ~Turn() { reader_.steps_.store(next_step(), std::memory_order_release); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    uint64_t next_step() const { return reader_.steps_.load(std::memory_order_relaxed) + 1; }

    Reader& reader_;
  };

  /// A question: which turns have begun?
  class Grace {
   public:
    Grace() = default;
    /// Whether they have ended. Does not wait.
    bool over();

   private:
    friend class PieceReaders;
    static constexpr size_t kAtOnce = 32;
    struct Begun {
      const Reader* reader;
      uint64_t step;
    };
    explicit Grace(const Reader* last) : next_(last) { look_at_some(); }
    void look_at_some();

    std::array<Begun, kAtOnce> begun_{};  // turns that may not have ended
    size_t count_ = 0;                    // of begun_
    // Who is looked at when those have ended: waiting for turns that begin meanwhile does no harm.
    const Reader* next_ = nullptr;
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
  std::atomic<Reader*> last_{nullptr};  // that joined
  std::mutex mutex_;                    // of those who join and leave
};

}  // namespace megalith
