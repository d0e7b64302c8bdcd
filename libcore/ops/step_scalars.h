#pragma once

/// The scalars and constants of an optimizer step, for host code, CPU kernels and CUDA kernels. This header
/// has no functions or includes, as the kernels require.
namespace megalith {

/// The scalars of one optimizer step, [kCount] f64 in device memory: the host never reads them within a step.
/// A host that begins a step before it knows whether the one before was skipped gives both learning rates and
/// corrections; DecideStep chooses.
namespace StepScalar {
enum : int {
  kLoss,            // sum over the microbatches, as ScaledSum computes it; without the loss scale
  kSumSquares,      // of the gradients, which still include the loss scale
  kStop,            // number of ranks that want the run to end
  kSummed,          // the scalars before this one are summed over the ranks
  kNorm = kSummed,  // of the gradients, without the loss scale and before clipping
  kGradScale,       // AdamW's factor for the gradients; 0: the step is skipped
  kLossScale,       // factor by which the backward pass scales the loss; 1: no scaling
  kLearningRate,
  kBiasCorrection1,  // 1 - beta1^step, steps counted from 1
  kBiasCorrection2,
  // What the three above are if the step before was skipped.
  kOtherLearningRate,
  kOtherBiasCorrection1,
  kOtherBiasCorrection2,
  kOwnLoss,        // kLoss before it is summed over the ranks
  kGiven,          // the host gives the scalars before this one, and keeps the others
  kSkip = kGiven,  // 1: loss or gradients are not finite, and nothing is updated; otherwise 0
  kCount
};
}  // namespace StepScalar

/// AdamW's parameters that do not change from step to step.
struct AdamConstants {
  double beta1, beta2, eps, weight_decay;
  double rate;  // factor on the learning rate
};

/// The factors of one AdamW step as its inner loop reads them.
struct AdamRates {
  float grad_scale, decay, beta2, step_size, root_bias2, eps;
  float one_minus_beta1, one_minus_beta2;  // 1 - beta, computed in fp64
};

}  // namespace megalith
