#pragma once

#include <cstdint>

namespace megalith {

/// Numbers from -1 to 1 that look random, for trials of kernels: a linear congruential generator, whose
/// sequence `seed` determines. Defined here because CUDA's plugin takes no body from the core's .cpp files.
class Noise {
 public:
  explicit Noise(uint32_t seed) : state_(seed) {}
  float next() {
    state_ = state_ * 1664525U + 1013904223U;
    return static_cast<float>(static_cast<int32_t>(state_)) * 0x1p-31F;
  }

 private:
  uint32_t state_;
};

}  // namespace megalith
