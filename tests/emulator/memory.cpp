#include "tests/emulator/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include <signal.h>
#include <sys/mman.h>

#include "tests/emulator/controls.h"
#include "tests/emulator/report.h"

namespace megalith::emulator {
namespace {

constexpr size_t kReserved = size_t{1} << 38, kPage = 4096, kHugePage = 2 << 20, kAlignment = 256;
constexpr int kFresh = 0xff;  // every byte of fresh memory: NaN in every format

constexpr size_t round_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

struct sigaction before;  // what handled SIGSEGV before the device did

void end_at_fault(int, siginfo_t* info, void*) {
  if (DeviceMemory::get().owns(info->si_addr))
    end_in_handler("the host touches device memory, or device code leaves its block or its device");
  sigaction(SIGSEGV, &before, nullptr);  // not ours: the instruction runs again and meets the former handler
}

void protect(std::byte* first, size_t bytes, int protection) {
  if (mprotect(first, bytes, protection) != 0) end_with("mprotect failed");
}

}  // namespace

DeviceMemory& DeviceMemory::get() {
  static DeviceMemory* const kMemory = new DeviceMemory;  // lives as long as the process
  return *kMemory;
}

DeviceMemory::DeviceMemory() {
  void* const reserved =
      mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) end_with("cannot reserve addresses for the device");
  base_ = static_cast<std::byte*>(reserved);
  struct sigaction action {};
  action.sa_sigaction = end_at_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &before);
}

void* DeviceMemory::allocate(size_t bytes, int device) {
  const std::lock_guard lock(mutex_);
  if (bytes > controls().memory || used_[device] > controls().memory - bytes) return nullptr;
  const size_t span = round_up(bytes, kAlignment), pages = round_up(span, kPage);
  if (pages >= kHugePage) end_ = round_up(end_, kHugePage);
  if (end_ + pages + kPage > kReserved) return nullptr;
  std::byte* const first = base_ + end_;
  std::byte* const begin = first + (pages - span);
  protect(first, pages, PROT_READ | PROT_WRITE);
  madvise(first, pages, MADV_HUGEPAGE);  // where there are such pages, they open and close 512 times as fast
  std::memset(first, kFresh, pages);
  if (open_ != device) protect(first, pages, PROT_NONE);
  end_ += pages + kPage;
  used_[device] += bytes;
  size_t& peak = controls().counts.peak_memory;
  peak = std::max(peak, used_[device]);
  blocks_.emplace(reinterpret_cast<uintptr_t>(begin), Block{bytes, first, pages, device});
  return begin;
}

void DeviceMemory::require_clean_edges(const std::byte* begin, const Block& block) const {
  const auto is_clean = [](const std::byte* from, const std::byte* to) {
    for (; from != to; ++from)
      if (*from != std::byte{kFresh}) return false;
    return true;
  };
  if (!is_clean(block.first, begin) || !is_clean(begin + block.bytes, block.first + block.pages))
    end_with("device code wrote beside a block of " + std::to_string(block.bytes) + " bytes");
}

void DeviceMemory::release(void* address) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<uintptr_t>(address));
  const Block block = found->second;
  protect(block.first, block.pages, PROT_READ | PROT_WRITE);
  require_clean_edges(static_cast<std::byte*>(address), block);
  madvise(block.first, block.pages, MADV_DONTNEED);
  protect(block.first, block.pages, PROT_NONE);
  used_[block.device] -= block.bytes;
  blocks_.erase(found);
}

int DeviceMemory::device_of(void* block) const {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<uintptr_t>(block));
  if (found == blocks_.end()) end_with("cudaFree of an address that cudaMalloc did not return");
  return found->second.device;
}

size_t DeviceMemory::used(int device) const {
  const std::lock_guard lock(mutex_);
  const auto found = used_.find(device);
  return found == used_.end() ? 0 : found->second;
}

bool DeviceMemory::owns(const void* address) const {
  return address >= base_ && address < base_ + kReserved;
}

void DeviceMemory::require_block(const void* address, size_t bytes, const Use& use) const {
  const std::string what = use.what;
  if (bytes == 0) return;
  if (!owns(address)) end_with(what + ": host memory where device memory is wanted");
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  auto block = blocks_.upper_bound(begin);
  if (block == blocks_.begin() || begin + bytes > (--block)->first + block->second.bytes)
    end_with(what + ": " + std::to_string(bytes) + " bytes that no block of device memory holds");
  if (block->second.device != use.device)
    end_with(what + ": memory of device " + std::to_string(block->second.device) + " used by device " +
             std::to_string(use.device));
}

void DeviceMemory::require_host(const void* address, const char* what) const {
  if (owns(address)) end_with(std::string(what) + ": device memory where host memory is wanted");
}

PageLockedMemory& PageLockedMemory::get() {
  static PageLockedMemory* const kMemory = new PageLockedMemory;  // lives as long as the process
  return *kMemory;
}

void* PageLockedMemory::allocate(size_t bytes) {
  auto memory = std::make_unique<std::vector<std::byte>>(bytes);
  std::byte* const begin = memory->data();
  const std::lock_guard guard(mutex_);
  blocks_.emplace(begin, Block{bytes, std::move(memory)});
  return begin;
}

bool PageLockedMemory::lock(void* block, size_t bytes) {
  if (const char* const refused = std::getenv("MEGALITH_EMULATOR_MEMORY_LOCK"))
    if (std::string_view(refused) == "refused") return false;
  const std::lock_guard guard(mutex_);
  blocks_.emplace(static_cast<std::byte*>(block), Block{bytes, nullptr});
  return true;
}

void PageLockedMemory::release(void* block) {
  const std::lock_guard lock(mutex_);
  if (blocks_.erase(static_cast<std::byte*>(block)) == 0)
    end_with("cudaFreeHost of an address that cudaMallocHost did not return");
}

bool PageLockedMemory::owns(const void* address) const {
  const auto* const place = static_cast<const std::byte*>(address);
  const std::lock_guard lock(mutex_);
  auto block = blocks_.upper_bound(place);
  return block != blocks_.begin() && place < (--block)->first + block->second.bytes;
}

void DeviceMemory::open(int device) {
  const std::lock_guard lock(mutex_);
  if (device == open_) return;
  for (const auto& [begin, block] : blocks_)
    if (block.device == device || block.device == open_)
      protect(block.first, block.pages, block.device == device ? PROT_READ | PROT_WRITE : PROT_NONE);
  open_ = device;
}

}  // namespace megalith::emulator
