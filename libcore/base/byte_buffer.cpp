#include "libcore/base/byte_buffer.h"

#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace megalith {
namespace {

/// The capacity from which a buffer has its own pages, which return to the system as soon as they are freed.
/// (malloc would keep such memory: once it has freed a separately mapped block of up to 32 MiB, it no longer
/// maps blocks up to that size separately.)
constexpr size_t kMapped = size_t{1} << 17;
constexpr size_t kPage = 4096;  // real pages may be larger: the system rounds sizes up

void* map_pages(size_t bytes) {
  return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

}  // namespace

void ByteBuffer::grow(size_t capacity) {
  if (capacity < kMapped) {
    void* const grown = std::realloc(data_, capacity);
    if (!grown) throw std::bad_alloc();
    data_ = static_cast<char*>(grown);
    capacity_ = capacity;
    return;
  }
  capacity = (capacity + kPage - 1) / kPage * kPage;
  const bool mapped = capacity_ >= kMapped;
  void* const pages = mapped ? ::mremap(data_, capacity_, capacity, MREMAP_MAYMOVE) : map_pages(capacity);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  if (!mapped) {
    if (size_ > 0) std::memcpy(pages, data_, size_);
    release();
  }
  data_ = static_cast<char*>(pages);
  capacity_ = capacity;
}

void ByteBuffer::release() {
  if (capacity_ < kMapped)
    std::free(data_);
  else
    ::munmap(data_, capacity_);
}

}  // namespace megalith
