#pragma once

#include "libcore/ops/activation.h"
#include "libcore/ops/cuda/queue.h"
#include "libcore/ops/dropout.h"
#include "libcore/ops/embedding.h"
#include "libcore/ops/loss.h"
#include "libcore/ops/norm.h"
#include "libcore/ops/optimizer.h"
#include "libcore/ops/slots.h"
#include "libcore/ops/step.h"

/// The ops whose kernels take rows, or elements one by one. Each function enqueues the kernels of its op on
/// the queue, whose device must be the calling thread's, and returns. It throws kDevice as the launchers do.
namespace megalith::cuda {

void run_on(Queue&, const AddSlots&);
void run_on(Queue&, const TakeSlots&);
void run_on(Queue&, const ScaleBy&);
void run_on(Queue&, const LayerNorm&);
void run_on(Queue&, const LayerNormGrad&);
void run_on(Queue&, const RmsNorm&);
void run_on(Queue&, const RmsNormGrad&);
void run_on(Queue&, const HeadSums&);
void run_on(Queue&, const HeadsNorm&);
void run_on(Queue&, const HeadsNormGrad&);
void run_on(Queue&, const Activate&);
void run_on(Queue&, const ActivateGrad&);
void run_on(Queue&, const SwiGlu&);
void run_on(Queue&, const SwiGluGrad&);
void run_on(Queue&, const Dropout&);
void run_on(Queue&, const Embedding&);
void run_on(Queue&, const EmbeddingGrad&);
void run_on(Queue&, const SoftmaxStats&);
void run_on(Queue&, const SoftmaxRescale&);
void run_on(Queue&, const CrossEntropy&);
void run_on(Queue&, const SoftmaxLoss&);
void run_on(Queue&, const SumSquares&);
void run_on(Queue&, const ScaledSum&);
void run_on(Queue&, const DecideStep&);
void run_on(Queue&, const AdamW&);

}  // namespace megalith::cuda
