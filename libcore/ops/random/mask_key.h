#pragma once

#include <stdint.h>

namespace megalith {

/// What a kernel needs of a DropoutKey (ops/dropout.h): the mask of a layer and site. scale 0: no dropout. In
/// a header of its own, because kernels for one instruction set or device may include no functions of others.
struct MaskKey {
  uint32_t seed, layer_site;
  uint32_t last_kept;  // random bits up to this one keep their element
  float scale;         // 1 / (1 - p)
};

}  // namespace megalith
