#include "libcore/model/measure.h"

#include <memory>

#include "libcore/model/dry_pass.h"
#include "libcore/ops/dry/dry_backend.h"

namespace megalith {

StageCost measure(const MeasureInput& input) {
  const std::unique_ptr<Backend> dry = make_dry_backend();
  return dry_pass(*dry, input);
}

}  // namespace megalith
