#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace megalith {

/// How often each pretoken occurs. Keeps copies of the texts, in large blocks, since the counts outlive the
/// lines that they came from.
class PieceCounts {
 public:
  PieceCounts() : slots_(1024) {}

  void add(std::string_view piece, int64_t times = 1);
  void add(const PieceCounts& other);
  int64_t count(std::string_view piece) const;  // 0 if it never occurred
  size_t size() const { return size_; }

  /// Calls `take(std::string_view piece, int64_t times)` for each pretoken, in no particular order. The texts
  /// live as long as this object.
  template <class Take>
  void for_each(Take&& take) const {
    for (const Slot& slot : slots_)
      if (slot.times > 0) take(std::string_view(slot.text, slot.bytes), slot.times);
  }

 private:
  struct Slot {
    const char* text = nullptr;
    size_t bytes = 0;
    size_t hash = 0;
    int64_t times = 0;  // 0: free
  };
  size_t place(std::string_view piece, size_t hash) const;
  const char* keep(std::string_view piece);
  void grow();

  std::vector<Slot> slots_;
  size_t size_ = 0;
  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_left_ = 0;
  char* block_at_ = nullptr;
};

}  // namespace megalith
