#include "tests/emulator/sectors.h"

#include <algorithm>
#include <cstring>

#include "tests/emulator/block.h"
#include "tests/emulator/controls.h"
#include "tests/emulator/memory.h"

namespace megalith::emulator {

void SectorCount::access(const void* address, size_t bytes, const void* instruction) {
  if (!DeviceMemory::get().owns(address)) return;
  Instruction& by = instructions_[instruction];
  if (by.executions == 0) used_.push_back(&by);
  if (by.thread != thread_) by.next = 0;
  by.thread = thread_;
  const size_t execution = by.next++;
  by.executions = std::max(by.executions, by.next);
  if (by.of_execution.size() < by.executions) by.of_execution.resize(by.executions);
  const auto begin = reinterpret_cast<uintptr_t>(address);
  for (uintptr_t sector = begin / kSector; sector * kSector < begin + bytes; ++sector)
    add(by.of_execution[execution], sector);
}

void SectorCount::add(Sectors& sectors, uintptr_t sector) {
  if (std::find(sectors.rbegin(), sectors.rend(), sector) == sectors.rend()) sectors.push_back(sector);
}

void SectorCount::end_warp() {
  for (Instruction* const by : used_) {
    for (size_t i = 0; i < by->executions; ++i) {
      controls().counts.sectors += static_cast<long>(by->of_execution[i].size());
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
  EmulatedBlock::running().sectors().access(address, bytes, instruction);
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
