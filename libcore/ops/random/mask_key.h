#pragma once

#include <stdint.h>

namespace megalith {

/// What a kernel needs of a DropoutKey (ops/dropout.h): the mask of a layer and site. scale 0: no dropout. In
/// a header without functions, since files compiled for one instruction set or device must not share
/// functions with others.
struct MaskKey {
  uint32_t seed, layer_site;
  uint32_t last_kept;  // an element is kept if its random bits are at most this
  float scale;         // 1 / (1 - p)
};

}  // namespace megalith
