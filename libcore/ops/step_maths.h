#pragma once

#include <math.h>

#include "libcore/ops/step_scalars.h"

/// The arithmetic between the gradients' norm and the update, in fp64: the same functions on the host and in
/// CUDA kernels. Needs no CUDA header.
#if defined(__CUDACC__)
#define MEGALITH_HD __host__ __device__ __forceinline__
#else
#define MEGALITH_HD inline
#endif

namespace megalith {

/// The factor by which Megatron and torch's clip_grad_norm_ scale a gradient of this norm: max_norm / (norm +
/// 1e-6) if that is below 1. max_norm 0: never clips.
MEGALITH_HD double clip_factor(double norm, double max_norm) {
  if (!(max_norm > 0)) return 1;
  const double factor = max_norm / (norm + 1e-6);
  return factor < 1 ? factor : 1;
}

/// What DecideStep computes, on its [StepScalar::kCount] scalars.
MEGALITH_HD void decide_step(double* scalars, double max_norm) {
  if (scalars[StepScalar::kSkip] != 0) {  // of the step before
    scalars[StepScalar::kLearningRate] = scalars[StepScalar::kOtherLearningRate];
    scalars[StepScalar::kBiasCorrection1] = scalars[StepScalar::kOtherBiasCorrection1];
    scalars[StepScalar::kBiasCorrection2] = scalars[StepScalar::kOtherBiasCorrection2];
  }
  const double loss_scale = scalars[StepScalar::kLossScale];
  const double norm = sqrt(scalars[StepScalar::kSumSquares]) / loss_scale;
  const bool finite = isfinite(scalars[StepScalar::kLoss]) && isfinite(norm);
  scalars[StepScalar::kNorm] = norm;
  scalars[StepScalar::kSkip] = finite ? 0 : 1;
  scalars[StepScalar::kGradScale] = finite ? clip_factor(norm, max_norm) / loss_scale : 0;
}

MEGALITH_HD AdamRates adam_rates(const double* scalars, const AdamConstants& constants) {
  const double learning_rate = constants.rate * scalars[StepScalar::kLearningRate];
  return {static_cast<float>(scalars[StepScalar::kGradScale]),
          static_cast<float>(1 - learning_rate * constants.weight_decay),
          static_cast<float>(constants.beta2),
          static_cast<float>(learning_rate / scalars[StepScalar::kBiasCorrection1]),
          static_cast<float>(sqrt(scalars[StepScalar::kBiasCorrection2])),
          static_cast<float>(constants.eps),
          static_cast<float>(1 - constants.beta1),
          static_cast<float>(1 - constants.beta2)};
}

}  // namespace megalith
