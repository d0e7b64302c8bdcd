#include "libcore/tensor/arena.h"

#include <algorithm>
#include <cstdint>

namespace megalith {
namespace {
constexpr uintptr_t kCountingBase = 4096;  // the address in views of a counting arena: not null, never read
}  // namespace

View Arena::make(DType dtype, Shape shape, std::string_view label) {
  const size_t rounded = bytes_of(dtype, shape);
  if (!counting_ && rounded > block_.bytes - top_)
    fail(ErrorKind::kInternal, "arena ", name_, ": ", label, " ", shape, " needs ", rounded, " bytes, ",
         block_.bytes - top_, " of ", block_.bytes, " are left");
  std::byte* const base =
      counting_
          ? reinterpret_cast<std::byte*>(kCountingBase)  // NOLINT(performance-no-int-to-ptr): never read
          : static_cast<std::byte*>(block_.data.get());
  View view{base + top_, dtype, shape};
  top_ += rounded;
  peak_ = std::max(peak_, top_);
  return view;
}

void Arena::rewind(size_t mark) {
  if (mark > top_) fail(ErrorKind::kInternal, "arena ", name_, ": rewind to ", mark, " past the top ", top_);
  top_ = mark;
}

}  // namespace megalith
