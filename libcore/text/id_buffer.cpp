#include "libcore/text/id_buffer.h"

#include <cstring>

#include "libcore/base/error.h"

namespace megalith {

void IdBuffer::append(std::span<const int32_t> ids) {
  if (width_ == sizeof(int32_t)) {
    bytes_.append(reinterpret_cast<const char*>(ids.data()), ids.size_bytes());
    return;
  }
  uint16_t* const out = extend<uint16_t>(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] > UINT16_MAX)
      fail(ErrorKind::kData, "token id ", ids[i],
           " does not fit 2 bytes; the tokenizer's vocabulary is larger than it says");
    out[i] = static_cast<uint16_t>(ids[i]);
  }
}

}  // namespace megalith
