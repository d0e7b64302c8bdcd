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
    {"accumulate-allreduce-grads-in-fp32", kNone},
    {"apply-query-key-layer-scaling", kNone},
    {"no-query-key-layer-scaling", kNone},
    {"check-for-nan-in-loss-and-grad", kMaybeOne},
    {"deterministic-mode", kNone},
    {"distribute-saved-activations", kNone},
    {"exit-signal-handler", kNone},
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
    {"wandb-entity", kOne},
    {"wandb-exp-name", kOne},
    {"wandb-project", kOne},
    {"wandb-save-dir", kOne},
    // PaddleNLP
    {"fp16-opt-level", kOne},
    {"per-device-eval-batch-size", kOne},
    {"sharding", kOne},
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

constexpr RefusedOption kRefused[] = {
    {"adlr-autoresume", "leave it out: a stopped run goes on with --load"},
    {"apply-residual-connection-post-layernorm", "leave it out: the residual branches off before the norm"},
    {"ckpt-step", "leave it out: the newest checkpoint of --load is taken"},
    {"decoupled-lr", "give one --lr for all parameters"},
    {"encoder-num-layers", "give --num-layers"},
    {"encoder-seq-length", "give --seq-length"},
    {"fp8-format", "train without it"},
    {"init-method-xavier-uniform", "leave it out: weights are drawn from a normal distribution"},
    {"lr-decay-samples", "give --lr-decay-iters"},
    {"lr-warmup-init", "leave it out: the warm-up begins at 0"},
    {"lr-warmup-samples", "give --lr-warmup-iters"},
    {"lr-wsd-decay-iters", "give --lr-decay-style constant, linear or cosine"},
    {"model-name-or-path", "give the model's shape (--num-layers, ...), and --load for its weights"},
    {"continue-training", "give --load DIR, and --finetune to begin at step 0"},
    {"input-dir", "give --data-path PREFIX"},
    {"no-position-embedding", "give --position-embedding-type none"},
    {"num-virtual-stages-per-pipeline-rank", "give --num-layers-per-virtual-pipeline-stage"},
    {"per-split-data-args-path", "give --data-path and --split"},
    {"data-args-path", "give --data-path and --split"},
    {"train-data-path", "give --data-path and --split"},
    {"valid-data-path", "give --data-path and --split"},
    {"test-data-path", "give --data-path and --split"},
    {"rampup-batch-size", "give --global-batch-size for the whole run"},
    {"rotary-seq-len-interpolation-factor", "leave it out"},
    {"skip-train", "leave it out, and give --train-iters"},
    {"use-rope-scaling", "leave it out"},
    {"vocab-extra-ids", "give --vocab-size with the extra ids counted in"},
};
}  // namespace

std::span<const RefusedOption> refused_megatron_options() {
  return kRefused;
}
std::span<const IgnoredOption> ignored_megatron_options() {
  return kMegatron;
}

}  // namespace megalith
