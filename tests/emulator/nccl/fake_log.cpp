#include "tests/emulator/nccl/fake_log.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <unistd.h>

namespace megalith::emulator {
namespace {

/// Null if nothing is to be logged. NCCL without a file writes to stdout, which no test reads.
std::FILE* open_log() {
  const char *const level = std::getenv("NCCL_DEBUG"), *const path = std::getenv("NCCL_DEBUG_FILE");
  if (level == nullptr || level != std::string_view("INFO") || path == nullptr) return nullptr;
  return std::fopen(path, "w");
}

}  // namespace

void log_connection(int connection, int rank, int device, int peer) {
  static std::FILE* const file = open_log();
  if (file == nullptr) return;
  std::fprintf(file, "emulated:%d:%d [%d] NCCL INFO Channel 00/%d : %d[%d] -> %d[%d] via SHM/direct/direct\n",
               getpid(), gettid(), device, connection, rank, device, peer, peer);
  std::fflush(file);
}

}  // namespace megalith::emulator
