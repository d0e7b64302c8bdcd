#pragma once

#include <stdint.h>

namespace megalith {

/// The fields of a DropoutKey (ops/dropout.h) that a kernel needs; they identify the mask of a layer and
/// site. scale 0: no dropout. This header has no functions, since files compiled for one instruction set or
/// device must not share functions with others.
struct MaskKey {
  uint32_t seed, layer_site;
  uint32_t last_kept;  // an element is kept if its random bits are at most this
  float scale;         // 1 / (1 - p)
};

}  // namespace megalith
