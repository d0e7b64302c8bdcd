#pragma once

#include "libcore/config/model_config.h"
#include "libcore/convert/output/adapter.h"
#include "libcore/generate/generate.h"

namespace megalith {

/// The keys and values of a prefix tuning adapter; where ranks share the model's matrices, those of this
/// rank's groups. kData if they have another model's shape.
KvPrefix read_prefix(const Adapter&, const ModelConfig&, const TensorSplit& = {});

}  // namespace megalith
