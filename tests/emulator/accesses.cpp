#include "tests/emulator/accesses.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "tests/emulator/block.h"
#include "tests/emulator/controls.h"

namespace megalith::emulator {

void WarpAccesses::begin_thread(unsigned lane) {
  ++thread_;
  lane_ = lane;
}

void WarpAccesses::add(const AccessPlace& place, const void* instruction) {
  Instruction& by = instructions_[instruction];
  if (by.executions == 0) used_.push_back(&by);
  if (by.thread != thread_) by.next = 0;
  by.thread = thread_;
  const size_t execution = by.next++;
  by.executions = std::max(by.executions, by.next);
  if (by.of_execution.size() < by.executions) by.of_execution.resize(by.executions);
  by.of_execution[execution].push_back({lane_, place});
}

namespace {

/// How many different numbers there are.
long distinct(std::vector<uintptr_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  return std::unique(numbers.begin(), numbers.end()) - numbers.begin();
}

}  // namespace

long WarpAccesses::sectors(const Execution& execution) {
  constexpr uintptr_t kSector = 32;
  std::vector<uintptr_t> touched;
  for (const Access& access : execution) {
    const uintptr_t begin = access.place.at, end = begin + access.place.bytes;
    if (access.place.shared) continue;
    for (uintptr_t sector = begin / kSector; sector * kSector < end; ++sector) touched.push_back(sector);
  }
  return distinct(touched);
}

long WarpAccesses::conflicts(const Execution& execution) {
  constexpr size_t kBanks = 32, kWord = 4;
  std::map<std::pair<size_t, size_t>, std::vector<uintptr_t>> words;  // by pass and bank
  for (const Access& access : execution) {
    if (!access.place.shared) continue;
    const size_t words_each = std::max<size_t>(1, access.place.bytes / kWord),
                 pass = access.lane / (kBanks / words_each);
    const uintptr_t first = access.place.at / kWord;
    for (uintptr_t word = first; word < first + words_each; ++word)
      words[{pass, word % kBanks}].push_back(word);
  }
  std::map<size_t, long> passes;
  for (auto& [place, of_bank] : words) {
    long& most = passes[place.first];
    most = std::max(most, distinct(of_bank));
  }
  long more = 0;
  for (const auto& [pass, needed] : passes) more += needed - 1;
  return more;
}

void WarpAccesses::end_warp() {
  for (Instruction* const by : used_) {
    for (size_t i = 0; i < by->executions; ++i) {
      controls().counts.sectors += sectors(by->of_execution[i]);
      controls().counts.bank_conflicts += conflicts(by->of_execution[i]);
      by->of_execution[i].clear();
    }
    by->executions = 0;
  }
  used_.clear();
}

}  // namespace megalith::emulator

#ifndef __SANITIZE_THREAD__  // that library has these functions
namespace megalith::emulator {
namespace {

/// The compiler's call before an access, in kernels of the counting device.
void note(const void* address, size_t bytes, const void* instruction) {
  EmulatedBlock::running().note_access(address, bytes, instruction);
}

}  // namespace
}  // namespace megalith::emulator

// What -fsanitize=thread calls. The library of that name is not linked: here, the calls only count.
// NOLINTBEGIN: names and signatures are the compiler's
#define MEGALITH_ACCESS(name)                                              \
  void __tsan_##name(void* address, size_t bytes);                         \
  void __tsan_##name(void* address, size_t bytes) {                        \
    megalith::emulator::note(address, bytes, __builtin_return_address(0)); \
  }
#define MEGALITH_SIZED_ACCESS(name, bytes)                                 \
  void __tsan_##name##bytes(void* address);                                \
  void __tsan_##name##bytes(void* address) {                               \
    megalith::emulator::note(address, bytes, __builtin_return_address(0)); \
  }
#define MEGALITH_SIZED_ACCESSES(name) \
  MEGALITH_SIZED_ACCESS(name, 1)      \
  MEGALITH_SIZED_ACCESS(name, 2)      \
  MEGALITH_SIZED_ACCESS(name, 4)      \
  MEGALITH_SIZED_ACCESS(name, 8)      \
  MEGALITH_SIZED_ACCESS(name, 16)
extern "C" {
MEGALITH_SIZED_ACCESSES(read)
MEGALITH_SIZED_ACCESSES(write)
MEGALITH_SIZED_ACCESSES(unaligned_read)
MEGALITH_SIZED_ACCESSES(unaligned_write)
MEGALITH_ACCESS(read_range)
MEGALITH_ACCESS(write_range)
void __tsan_init();
void __tsan_init() {}
void __tsan_func_entry(void*);
void __tsan_func_entry(void*) {}
void __tsan_func_exit();
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*);
void __tsan_vptr_update(void**, void*) {}
void* __tsan_memcpy(void* to, const void* from, size_t bytes);
void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  megalith::emulator::note(from, bytes, __builtin_return_address(0));
  megalith::emulator::note(to, bytes, __builtin_return_address(0));
  return std::memcpy(to, from, bytes);
}
void* __tsan_memset(void* to, int value, size_t bytes);
void* __tsan_memset(void* to, int value, size_t bytes) {
  megalith::emulator::note(to, bytes, __builtin_return_address(0));
  return std::memset(to, value, bytes);
}
}
// NOLINTEND
#endif
