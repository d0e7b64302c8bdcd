#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

namespace megalith {

/// Empties a container and frees its memory. (A vector keeps it when {} is assigned, and a std::string may
/// keep it when an empty one is moved to it.)
template <class Container>
void free_memory(Container& container) {
  Container().swap(container);
}

/// Working memory that no call uses now. A call borrows one (or makes one) and gives it back afterwards, so
/// calls never wait for each other.
template <class Scratch>
class IdlePool {
 public:
  IdlePool() = default;
  IdlePool(const IdlePool&) = delete;
  IdlePool& operator=(const IdlePool&) = delete;
  ~IdlePool() {
    for (const Idle& idle : idle_) delete idle.scratch.load();
  }

  /// Gives a Scratch back, or frees it if the pool is full.
  struct GiveBack {
    IdlePool* pool;
    void operator()(Scratch* scratch) const { pool->put(scratch); }
  };
  using Loan = std::unique_ptr<Scratch, GiveBack>;

  /// One that is idle, or else what `make()` returns (a std::unique_ptr).
  template <class Make>
  Loan borrow(const Make& make) {
    for (size_t i = 0; i < kSlots; ++i) {
      std::atomic<Scratch*>& idle = slot(i);
      if (!idle.load(std::memory_order_relaxed)) continue;
      if (Scratch* const found = idle.exchange(nullptr, std::memory_order_acquire))
        return Loan(found, {this});
    }
    return Loan(make().release(), {this});
  }

 private:
  static constexpr size_t kSlots = 64;
  struct alignas(64) Idle {
    std::atomic<Scratch*> scratch;
  };

  void put(Scratch* scratch) {
    for (size_t i = 0; i < kSlots; ++i) {
      Scratch* none = nullptr;
      if (slot(i).compare_exchange_strong(none, scratch, std::memory_order_release)) return;
    }
    delete scratch;
  }
  /// The index at which this thread first looks.
  static size_t thread_number() {
    static std::atomic<size_t> next{0};
    thread_local size_t number = next++;
    return number;
  }
  std::atomic<Scratch*>& slot(size_t i) { return idle_[(thread_number() + i) % kSlots].scratch; }

  std::array<Idle, kSlots> idle_{};
};

}  // namespace megalith
