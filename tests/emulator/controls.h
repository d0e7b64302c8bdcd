#pragma once

#include <atomic>
#include <cstddef>

namespace megalith::emulator {

/// A number that several threads may raise.
class Count {
 public:
  Count() = default;
  Count(const Count& other) : value_(other.value_.load()) {}
  Count& operator=(const Count& other) {
    value_ = other.value_.load();
    return *this;
  }
  void operator++() { ++value_; }
  void operator+=(long more) { value_ += more; }
  void raise_to(long value) {
    for (long now = value_; now < value && !value_.compare_exchange_weak(now, value);) {
    }
  }
  operator long() const { return value_; }  // NOLINT(google-explicit-constructor): it is one

 private:
  std::atomic<long> value_ = 0;
};

/// How often the emulated devices were called since the process began.
struct CallCounts {
  Count allocations;     // of device memory and of page-locked host memory
  Count events;          // made
  Count host_functions;  // enqueued
  Count waits;           // of the host for a stream or an event, and copies of pageable memory to a device
  Count copies_in, copies_out;
  Count kernels, products;  // a captured one counts once, when it is captured
  Count captures, graph_launches;
  Count graph_nodes;          // of all graphs that were made
  Count graphs, most_graphs;  // that there are, and that there were at once
  Count attentions;           // plans of cuDNN
  Count unaligned_products;   // with a matrix whose columns do not all begin at multiples of 16 bytes
  Count matrix_products;      // mma.sync
  Count special_functions;    // of a thread: powers, logarithms, roots
  // Additional passes over shared memory: of ldmatrix and, on the counting device, of all accesses to what a
  // launch asked for.
  Count bank_conflicts;
  Count sectors;           // of 32 bytes, that warps asked of global memory; only on the counting device
  size_t peak_memory = 0;  // bytes of one device
};

/// What tests set and read in the emulated device. A program's test sets the environment instead:
/// MEGALITH_EMULATOR_ORDER, _DEVICES and _MEMORY give the first three, MEGALITH_EMULATOR_FAULT=ERROR:AFTER
/// the fault, MEGALITH_EMULATOR_TAKEN=DEVICE:BYTES what another program has taken, MEGALITH_EMULATOR_CUBLAS,
/// _ALGORITHMS and _FASTEST the version of cuBLASLt, how many algorithms it suggests and which is the
/// fastest, and the counts are written as a JSON object to the file MEGALITH_EMULATOR_COUNTS when the process
/// ends.
struct Controls {
  /// Seeds the order in which the work of several streams runs. Where it is odd, the blocks of a kernel and
  /// the threads of a block run last to first.
  unsigned order = 1;
  int devices = 1;
  size_t memory = size_t{16} << 30;  // bytes of each device
  int taken_device = 0;              // by its number on the machine: other programs have taken
  size_t taken = 0;                  // so many bytes of its memory
  bool never_done = false;           // the work of no stream ends, as far as the host can tell
  /// An error of the runtime with which the device fails after so many kernels; of cudaErrorMemoryAllocation,
  /// with which it refuses memory after so many allocations. 0: it does not fail.
  int fault = 0;
  long fault_after = 0;
  int graphless_device = -1;  // which lacks the memory of a graph; -1: none does
  size_t cublas = 130100;     // cuBLASLt's version
  unsigned algorithms = 5;    // the most of its algorithms that cuBLASLt suggests (products.cpp)
  unsigned fastest = 1;       // the fastest of those that are right: 0 or 1
  /// The status by which products with an epilogue are refused when they run; 0: none is.
  int refuses_epilogues = 0;
  double epilogue_time = 0;    // what an epilogue takes, in units of work
  long refused_after = -1;     // the second one is refused after it ran so often; below 0: never
  double work_seconds = 1e-5;  // of each kernel, product, copy and fill, by the device's clock
  CallCounts counts;
};

/// The controls of this process's device. The emulated plugin exports megalith_emulator_controls(), which
/// returns its address.
Controls& controls();

}  // namespace megalith::emulator
