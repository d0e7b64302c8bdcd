#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace megalith {

/// Two token ids side by side; both are at least 0, so no pair equals kNoPair.
using IdPair = uint64_t;
constexpr IdPair kNoPair = ~uint64_t{0};
constexpr IdPair id_pair(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}
constexpr int32_t left_of(IdPair pair) {
  return static_cast<int32_t>(pair >> 32);
}
constexpr int32_t right_of(IdPair pair) {
  return static_cast<int32_t>(pair & 0xFFFFFFFF);
}

/// Hash map from pairs of ids: a flat array with linear probing, at most half full, so that a lookup usually
/// touches one cache line. Entries are never removed. Pointers to values are valid until the next insertion.
template <class Value>
class PairMap {
 public:
  explicit PairMap(size_t expected = 8) { resize(std::bit_ceil(expected * 2 + 2)); }

  const Value* find(IdPair pair) const {
    const Slot& slot = slots_[place(pair)];
    return slot.pair == pair ? &slot.value : nullptr;
  }
  Value* find(IdPair pair) { return const_cast<Value*>(std::as_const(*this).find(pair)); }

  /// The value of `pair`, default-constructed if it is new.
  Value& operator[](IdPair pair) {
    size_t at = place(pair);
    if (slots_[at].pair != pair) {
      if (++size_ * 2 > slots_.size()) {
        grow();
        at = place(pair);
      }
      slots_[at].pair = pair;
    }
    return slots_[at].value;
  }

  size_t size() const { return size_; }

  /// Calls `take(pair, value)` for each entry, in any order.
  template <class Take>
  void for_each(Take&& take) {
    for (Slot& slot : slots_)
      if (slot.pair != kNoPair) take(slot.pair, slot.value);
  }
  template <class Take>
  void for_each(Take&& take) const {
    for (const Slot& slot : slots_)
      if (slot.pair != kNoPair) take(slot.pair, slot.value);
  }

 private:
  struct Slot {
    IdPair pair = kNoPair;
    Value value{};
  };

  void resize(size_t slots) {
    slots_ = std::vector<Slot>(slots);
    shift_ = 64 - std::countr_zero(slots);
  }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    resize(old.size() * 2);
    for (Slot& slot : old)
      if (slot.pair != kNoPair) slots_[place(slot.pair)] = std::move(slot);
  }
  /// Where `pair` is, or the free slot where it would be.
  size_t place(IdPair pair) const {
    size_t at = static_cast<size_t>((pair * 0x9E3779B97F4A7C15u) >> shift_);
    while (slots_[at].pair != pair && slots_[at].pair != kNoPair) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
  int shift_ = 0;
};

}  // namespace megalith
