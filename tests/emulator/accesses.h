#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace megalith::emulator {

/// Where an access is: in global memory, or in a block's shared memory, whose first byte is 0.
struct AccessPlace {
  uintptr_t at;
  size_t bytes;
  bool shared;
};

/// Counts what the warps of a block ask of memory: 32-byte sectors of global memory, and conflicts of shared
/// memory. A warp's threads execute an instruction together, so a sector that several of them touch counts
/// once for each execution. Threads run one after the other here: two accesses belong together if they come
/// from the same instruction and are each thread's n-th of it since the warp last met. Is told each access by
/// the code that the compiler puts before it (accesses.cpp), in kernels that were compiled for that.
///
/// Shared memory has 32 banks of 4 bytes. A pass serves the 32 threads of a warp, 16 that access 8 bytes
/// each, or 8 that access 16 bytes each. Where threads of a pass access different words of a bank, each
/// further word takes another pass: a conflict.
class WarpAccesses {
 public:
  /// The running thread is about to access memory, by the instruction before `instruction`.
  void add(const AccessPlace& place, const void* instruction);
  /// Another thread of the warp runs from here on: the one with this number.
  void begin_thread(unsigned lane);
  /// Every thread of the warp has reached the place where they meet.
  void end_warp();

 private:
  struct Access {
    unsigned lane;
    AccessPlace place;
  };
  using Execution = std::vector<Access>;
  struct Instruction {
    size_t thread = 0, next = 0;          // the last thread's accesses so far
    size_t executions = 0;                // of the warp
    std::vector<Execution> of_execution;  // the first `executions` are in use
  };
  static long sectors(const Execution& execution);
  static long conflicts(const Execution& execution);

  size_t thread_ = 0;
  unsigned lane_ = 0;
  std::unordered_map<const void*, Instruction> instructions_;
  std::vector<Instruction*> used_;
};

}  // namespace megalith::emulator
