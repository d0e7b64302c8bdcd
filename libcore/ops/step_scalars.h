#pragma once

/// Names and numbers of an optimizer step that host code, CPU kernels and CUDA kernels share: for the sake of
/// the last two without any function or include.
namespace megalith {

/// The scalars of one optimizer step, [kCount] f64 in device memory: what the optimizer needs is never read
/// by the host inside a step.
namespace StepScalar {
enum : int {
  kLoss,            // sum over the microbatches, as ScaledSum adds it up; without the loss scale
  kSumSquares,      // of the gradients as they stand, loss scale and all
  kStop,            // ranks that want the run to end
  kSummed,          // those before this one are summed over the ranks
  kNorm = kSummed,  // of the gradients without the loss scale, before clipping
  kGradScale,       // AdamW's factor of the gradients; 0: skipped
  kLossScale,       // the loss's factor before the backward pass; 1: none
  kLearningRate,
  kBiasCorrection1,  // 1 - beta1^step, steps counted from 1
  kBiasCorrection2,
  kSkip,  // 1: loss or gradients are not finite, nothing is updated; else 0
  kCount
};
}  // namespace StepScalar

/// What stays the same from step to step.
struct AdamConstants {
  double beta1, beta2, eps, weight_decay;
};

/// The factors of one AdamW step as its inner loop takes them.
struct AdamRates {
  float grad_scale, decay, beta2, step_size, root_bias2, eps;
  float one_minus_beta1, one_minus_beta2;  // subtracted in fp64
};

}  // namespace megalith
