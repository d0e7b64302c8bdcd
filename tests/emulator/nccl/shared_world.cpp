#include "tests/emulator/nccl/shared_world.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/emulator/report.h"

namespace megalith::emulator {
namespace {

// The memory is a sparse file: pages that no call touches are never allocated.
constexpr size_t kGiven = size_t{256} << 20, kMessage = size_t{64} << 20, kPage = 4096;

void require_at_most(size_t bytes, size_t limit, const char* what) {
  if (bytes > limit)
    end_with(std::string("nccl: ") + what + " of " + std::to_string(bytes) + " bytes, at most " +
             std::to_string(limit) + " here");
}

}  // namespace

std::string describe(const SharedCall& call) {
  constexpr const char* kNames[] = {"all_reduce", "all_gather", "reduce_scatter",
                                    "reduce",     "broadcast",  "message"};
  return kNames[call.kind] + (" of " + std::to_string(call.elements)) + " elements of type " +
         std::to_string(call.type) + ", reduction " + std::to_string(call.reduce) + ", root " +
         std::to_string(call.root) +
         (call.captured == 0 ? "" : ", captured as call " + std::to_string(call.captured));
}

SharedWorld::SharedWorld(const std::string& name, int size) : name_(name), size_(size) {
  if (size > kMaxRanks) end_with("nccl: a communicator of " + std::to_string(size) + " ranks");
  const int file = shm_open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes())) != 0)
    end_with("nccl: no shared memory " + name);
  void* const memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  close(file);
  if (memory == MAP_FAILED) end_with("nccl: cannot map shared memory " + name);
  memory_ = static_cast<std::byte*>(memory);
}

SharedWorld::~SharedWorld() {
  if (!all_joined()) shm_unlink(name_.c_str());
  munmap(memory_, bytes());
}

std::byte* SharedWorld::data() const {
  return memory_ + (sizeof(Head) + kPage - 1) / kPage * kPage;
}

size_t SharedWorld::bytes() const {
  const auto ranks = static_cast<size_t>(size_);
  return (sizeof(Head) + kPage - 1) / kPage * kPage + ranks * (kGiven + ranks * kMessage);
}

std::byte* SharedWorld::given(int rank, size_t bytes) const {
  require_at_most(bytes, kGiven, "a tensor");
  return data() + static_cast<size_t>(rank) * kGiven;
}

std::byte* SharedWorld::message(int from, int to, size_t bytes) const {
  require_at_most(bytes, kMessage, "a message");
  const auto place = static_cast<size_t>(from) * static_cast<size_t>(size_) + static_cast<size_t>(to);
  return data() + static_cast<size_t>(size_) * kGiven + place * kMessage;
}

void SharedWorld::join(int rank) {
  place(rank).process = getpid();
  if (place(rank).joined.exchange(true)) end_with("nccl: two ranks " + std::to_string(rank) + " of " + name_);
  if (all_joined()) shm_unlink(name_.c_str());
}

bool SharedWorld::all_joined() const {
  for (int rank = 0; rank < size_; ++rank)
    if (!place(rank).joined) return false;
  return true;
}

}  // namespace megalith::emulator
