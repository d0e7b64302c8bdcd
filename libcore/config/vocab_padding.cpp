#include "libcore/config/vocab_padding.h"

#include "libcore/base/log.h"

namespace megalith {

int64_t padded_vocab_size(int64_t size, int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

void log_padded_vocab(int64_t size, int64_t padded) {
  log(" > padded vocab (size: ", size, ") with ", padded - size, " dummy tokens (new size: ", padded, ")");
}

}  // namespace megalith
