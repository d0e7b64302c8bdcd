#include "tests/emulator/controls.h"

#include <cstdlib>
#include <fstream>

namespace megalith::emulator {
namespace {

void write_counts() {
  const CallCounts& counts = controls().counts;
  std::ofstream file(std::getenv("MEGALITH_EMULATOR_COUNTS"));
  file << "{\"allocations\": " << counts.allocations << ", \"events\": " << counts.events
       << ", \"host_functions\": " << counts.host_functions << ", \"waits\": " << counts.waits
       << ", \"copies_in\": " << counts.copies_in << ", \"copies_out\": " << counts.copies_out
       << ", \"captures\": " << counts.captures << ", \"graph_launches\": " << counts.graph_launches
       << ", \"kernels\": " << counts.kernels << ", \"products\": " << counts.products
       << ", \"unaligned_products\": " << counts.unaligned_products
       << ", \"matrix_products\": " << counts.matrix_products
       << ", \"special_functions\": " << counts.special_functions
       << ", \"bank_conflicts\": " << counts.bank_conflicts << ", \"sectors\": " << counts.sectors
       << ", \"peak_memory\": " << counts.peak_memory << "}\n";
}

Controls make_controls() {
  Controls made;
  if (const char* const order = std::getenv("MEGALITH_EMULATOR_ORDER"))
    made.order = static_cast<unsigned>(std::strtoul(order, nullptr, 10));
  if (const char* const devices = std::getenv("MEGALITH_EMULATOR_DEVICES"))
    made.devices = static_cast<int>(std::strtol(devices, nullptr, 10));
  if (const char* const memory = std::getenv("MEGALITH_EMULATOR_MEMORY"))
    made.memory = std::strtoull(memory, nullptr, 10);
  if (const char* const cublas = std::getenv("MEGALITH_EMULATOR_CUBLAS"))
    made.cublas = std::strtoull(cublas, nullptr, 10);
  if (const char* const algorithms = std::getenv("MEGALITH_EMULATOR_ALGORITHMS"))
    made.algorithms = static_cast<unsigned>(std::strtoul(algorithms, nullptr, 10));
  if (const char* const fastest = std::getenv("MEGALITH_EMULATOR_FASTEST"))
    made.fastest = static_cast<unsigned>(std::strtoul(fastest, nullptr, 10));
  if (const char* const graphless = std::getenv("MEGALITH_EMULATOR_GRAPHLESS"))
    made.graphless_device = static_cast<int>(std::strtol(graphless, nullptr, 10));
  if (const char* const taken = std::getenv("MEGALITH_EMULATOR_TAKEN")) {
    char* end = nullptr;
    made.taken_device = static_cast<int>(std::strtol(taken, &end, 10));
    made.taken = *end == ':' ? std::strtoull(end + 1, nullptr, 10) : 0;
  }
  if (const char* const fault = std::getenv("MEGALITH_EMULATOR_FAULT")) {
    char* end = nullptr;
    made.fault = static_cast<int>(std::strtol(fault, &end, 10));
    made.fault_after = *end == ':' ? std::strtol(end + 1, nullptr, 10) : 0;
  }
  if (std::getenv("MEGALITH_EMULATOR_COUNTS") != nullptr) std::atexit(write_counts);
  return made;
}

}  // namespace

Controls& controls() {
  static Controls* const kMade = new Controls(make_controls());  // lives as long as the process
  return *kMade;
}

}  // namespace megalith::emulator

extern "C" __attribute__((visibility("default"))) megalith::emulator::Controls* megalith_emulator_controls() {
  return &megalith::emulator::controls();
}
