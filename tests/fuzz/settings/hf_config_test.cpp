#include "libcore/convert/sources/hf_config.h"

#include "libcore/plan/shape/hf_shape.h"
#include "tests/fuzz/fuzz.h"

/// Reads a Hugging Face config.json, for a conversion and for a plan.
MEGALITH_FUZZ_TARGET(hf_config) {
  using namespace megalith;
  const Json json = Json::parse(bytes, "config.json");
  fuzz::accept({ErrorKind::kData}, [&] { parse_hf_config(json, "config.json"); });
  fuzz::accept({ErrorKind::kData}, [&] { parse_hf_shape(json, "config.json"); });
}
