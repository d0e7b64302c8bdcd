#include "tests/emulator/copies.h"

#include <cstring>

namespace megalith::emulator {

void AsyncCopies::start(void* to, const void* from, size_t bytes) {
  std::memset(to, 0xff, bytes);
  copies_.push_back({to, from, bytes, groups_});
}

void AsyncCopies::wait(size_t left) {
  std::erase_if(copies_, [&](const Copy& copy) {
    if (copy.group + left >= groups_) return false;
    if (copy.from == nullptr)
      std::memset(copy.to, 0, copy.bytes);
    else
      std::memcpy(copy.to, copy.from, copy.bytes);
    return true;
  });
}

}  // namespace megalith::emulator
