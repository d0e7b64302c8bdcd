#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace megalith::emulator {

/// Counts the 32-byte sectors of global memory that the warps of a block ask for. A warp's threads execute an
/// instruction together, so a sector that several of them touch counts once for each execution. Threads run
/// one after the other here: two accesses belong together if they come from the same instruction and are each
/// thread's n-th of it since the warp last met. Is told each access by the code that the compiler puts before
/// it (sectors.cpp), in kernels that were compiled for that.
class SectorCount {
 public:
  /// The running thread is about to access memory, by the instruction before `instruction`.
  void access(const void* address, size_t bytes, const void* instruction);
  /// Another thread of the warp runs from here on.
  void begin_thread() { ++thread_; }
  /// Every thread of the warp has reached the place where they meet.
  void end_warp();

 private:
  static constexpr uintptr_t kSector = 32;
  using Sectors = std::vector<uintptr_t>;
  struct Instruction {
    size_t thread = 0, next = 0;        // the last thread's accesses so far
    size_t executions = 0;              // of the warp
    std::vector<Sectors> of_execution;  // the first `executions` are in use
  };
  static void add(Sectors& sectors, uintptr_t sector);

  size_t thread_ = 0;
  std::unordered_map<const void*, Instruction> instructions_;
  std::vector<Instruction*> used_;
};

}  // namespace megalith::emulator
