#include "apps/one_process.h"

#include <cstdlib>

#include "libcore/base/error.h"
#include "libcore/launch/environment.h"

namespace megalith {

void require_one_process(const char* name) {
  require_one_process(Environment([](const char* variable) { return std::getenv(variable); }),
                      concat("megalith-", name));
}

}  // namespace megalith
