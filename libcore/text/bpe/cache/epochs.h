#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace megalith {

/// Epoch-based reclamation (Fraser 2004; cf. RCU): threads read, without ever waiting, entries that other
/// threads replace. A writer first unlinks an entry, so that no new reader finds it. It reuses the entry
/// after a grace period, when all read guards that were alive at the unlinking have ended. So an entry that a
/// reader found stays unchanged until the reader's guard ends.
///
/// A guard begins with a store followed by a load. x86-64 keeps the two in order only because the store is an
/// exchange; the C++ standard alone would not guarantee the order.
class Epochs {
 public:
  /// The state of one thread's guards.
  class alignas(64) Reader {
   private:
    friend class Epochs;
    std::atomic<uint64_t> steps_{0};  // counts beginnings and ends of guards, so it is odd while one is alive
    std::unique_ptr<Reader> next_;    // the reader that joined before this one
    bool free_ = false;
  };

  /// While a guard is alive, the entries that its thread has found do not change. A thread has one guard at a
  /// time and keeps it short, since writers wait for it.
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

  /// A period that ends when all guards that were alive at its beginning have ended.
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
    size_t count_ = 0;                    // number of guards in alive_
    // The next reader to look at once the guards in alive_ have ended, so that only kAtOnce guards need be
    // remembered. The period may also wait for guards that began in the meantime, which does no harm.
    const Reader* next_ = nullptr;
  };

  Epochs() = default;
  ~Epochs();
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;

  /// join(): a reader for the calling thread; it exists as long as this object. leave(): gives the reader
  /// back, so that another thread may get it.
  Reader& join();
  void leave(Reader& reader);

  /// Begins a grace period. Call it after unlinking something.
  GracePeriod begin_grace_period() const;

 private:
  std::atomic<Reader*> last_{nullptr};  // the reader that joined last
  std::mutex mutex_;                    // held by join() and leave()
};

}  // namespace megalith
