#include "libcore/options/problems.h"

#include "libcore/base/text.h"

namespace megalith {

void Problems::throw_if_any(ErrorKind kind) const {
  if (!list_.empty()) throw Error(kind, join(list_, "\n"));
}

}  // namespace megalith
