#include "libcore/config/cli.h"

namespace megalith {

namespace {
constexpr auto kNone = IgnoredOption::kNone;
constexpr auto kOne = IgnoredOption::kOne;
constexpr auto kMaybeOne = IgnoredOption::kMaybeOne;

/// Options that choose an implementation of the same mathematics, a launcher's plumbing, or a report that has
/// no equivalent. What would change the result is not here: it is a field, and refused by name where it is
/// not supported.
constexpr IgnoredOption kMegatron[] = {
    // Megatron-LM: which code runs
    {"DDP-impl", kOne},
    {"attention-backend", kOne},
    {"attention-softmax-in-fp32", kNone},
    {"bias-dropout-fusion", kMaybeOne},
    {"bias-swiglu-fusion", kMaybeOne},
    {"cross-entropy-loss-fusion", kNone},
    {"cross-entropy-fusion-impl", kOne},
    {"data-impl", kOne},
    {"ddp-bucket-size", kOne},
    {"distributed-backend", kOne},
    {"distributed-timeout-minutes", kOne},
    {"empty-unused-memory-level", kOne},
    {"enable-cuda-graph", kNone},
    {"gradient-accumulation-fusion", kMaybeOne},
    {"lazy-mpu-init", kMaybeOne},
    {"local-rank", kOne},
    {"manual-gc", kNone},
    {"manual-gc-interval", kOne},
    {"masked-softmax-fusion", kMaybeOne},
    {"mmap-bin-files", kMaybeOne},
    {"no-async-tensor-model-parallel-allreduce", kNone},
    {"no-contiguous-buffers-in-local-ddp", kNone},
    {"no-data-sharding", kNone},
    {"no-persist-layer-norm", kNone},
    {"num-dataset-builder-threads", kOne},
    {"num-workers", kOne},
    {"overlap-grad-reduce", kNone},
    {"overlap-p2p-communication", kMaybeOne},
    {"overlap-param-gather", kNone},
    {"persist-layer-norm", kMaybeOne},
    {"rope-fusion", kMaybeOne},
    {"sequence-parallel-overlap", kNone},
    {"tp-comm-overlap", kNone},
    {"transformer-impl", kOne},
    {"use-contiguous-buffers-in-local-ddp", kNone},
    {"use-cpu-initialization", kNone},
    {"use-flash-attn", kMaybeOne},
    {"use-legacy-models", kNone},
    {"use-mcore-models", kNone},
    {"use-mpi", kNone},
    {"use-ring-exchange-p2p", kNone},
    // Megatron-LM: checkpoints and reports
    {"async-save", kNone},
    {"ckpt-format", kOne},
    {"dist-ckpt-format", kOne},
    {"use-dist-ckpt", kNone},
    {"auto-detect-ckpt-format", kNone},
    {"ckpt-fully-parallel-save", kMaybeOne},
    {"log-batch-size-to-tensorboard", kNone},
    {"log-loss-scale-to-tensorboard", kMaybeOne},
    {"log-memory-to-tensorboard", kNone},
    {"log-num-zeros-in-grad", kNone},
    {"log-params-norm", kNone},
    {"log-progress", kNone},
    {"log-throughput", kNone},
    {"log-timers-to-tensorboard", kNone},
    {"log-validation-ppl-to-tensorboard", kNone},
    {"log-world-size-to-tensorboard", kNone},
    {"tensorboard-log-interval", kOne},
    {"tensorboard-queue-size", kOne},
    {"timing-log-level", kOne},
    {"timing-log-option", kOne},
    {"task-type", kOne},
    // PaddleNLP
    {"dataloader-num-workers", kOne},
    {"device", kOne},
    {"disable-tqdm", kMaybeOne},
    {"do-eval", kMaybeOne},
    {"do-train", kMaybeOne},
    {"log-dir", kOne},
    {"model-type", kOne},
    {"overwrite-output-dir", kMaybeOne},
    {"pipeline-parallel-config", kOne},
    {"report-to", kOne},
    {"use-flash-attention", kMaybeOne},
    {"use-fused-rms-norm", kMaybeOne},
};
}  // namespace

std::span<const IgnoredOption> ignored_megatron_options() {
  return kMegatron;
}

}  // namespace megalith
