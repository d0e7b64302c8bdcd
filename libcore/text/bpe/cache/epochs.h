#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace megalith {

/// Epoch-based reclamation (Fraser 2004; cf. RCU), for threads that read what others replace meanwhile, and
/// never wait. A writer unlinks an entry, so that no new reader finds it, and reuses it after a grace period:
/// when all read guards have ended that lived when it was unlinked. So what a reader finds stays as it is
/// until its guard ends.
///
/// A guard begins by storing and then reading, which x86-64 keeps in order only because the store is an
/// exchange; the C++ standard alone would not.
class Epochs {
 public:
  /// One thread's guards.
  class alignas(64) Reader {
   private:
    friend class Epochs;
    std::atomic<uint64_t> steps_{0};  // counts guards' begins and ends, so odd while one lives
    std::unique_ptr<Reader> next_;    // which joined before
    bool free_ = false;
  };

  /// Guards what its thread reads, for as long as it lives. A thread has one at a time, and a short one,
  /// because writers wait for it.
  class ReadGuard {
   public:
    explicit ReadGuard(Reader& reader) : reader_(reader) { reader.steps_.exchange(next_step()); }
    ~ReadGuard() { reader_.steps_.store(next_step(), std::memory_order_release); }
    ReadGuard(const ReadGuard&) = delete;
    ReadGuard& operator=(const ReadGuard&) = delete;

   private:
    uint64_t next_step() const { return reader_.steps_.load(std::memory_order_relaxed) + 1; }

    Reader& reader_;
  };

  /// The wait for the guards that lived when it began.
  class GracePeriod {
   public:
    GracePeriod() = default;
    /// Whether those guards have ended. Does not wait.
    bool over();

   private:
    friend class Epochs;
    static constexpr size_t kAtOnce = 32;
    struct Alive {
      const Reader* reader;
      uint64_t step;
    };
    explicit GracePeriod(const Reader* last) : next_(last) { look_at_some(); }
    void look_at_some();

    std::array<Alive, kAtOnce> alive_{};  // guards that may not have ended
    size_t count_ = 0;                    // of alive_
    // Who is looked at when those have ended. So only kAtOnce need be remembered; waiting for guards that
    // begin meanwhile does no harm.
    const Reader* next_ = nullptr;
  };

  Epochs() = default;
  ~Epochs();
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;

  /// A reader for the calling thread; lasts as long as this object, but belongs to another after leave().
  Reader& join();
  void leave(Reader& reader);

  /// Begins a grace period, after something was unlinked.
  GracePeriod begin_grace_period() const;

 private:
  std::atomic<Reader*> last_{nullptr};  // that joined
  std::mutex mutex_;                    // of those who join and leave
};

}  // namespace megalith
