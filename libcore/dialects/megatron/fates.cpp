#include "libcore/dialects/megatron/fates.h"

#include <algorithm>
#include <iterator>

#include "libcore/options/fields.h"

namespace megalith {
namespace {

// The planner accepts the training options of the run that it plans.
constexpr unsigned kTraining = kPretrain | kAutoplan;
constexpr auto kNone = OptionFate::kNone;
constexpr auto kOne = OptionFate::kOne;
constexpr auto kMaybeOne = OptionFate::kMaybeOne;
constexpr auto kSeveral = OptionFate::kSeveral;
constexpr std::string_view kMegatron = "Megatron-LM";
constexpr std::string_view kPaddle = "PaddleNLP";
constexpr std::string_view kFactory = "LLaMA-Factory";

/// A line of the table: several names, separated by blanks, and their common fate.
struct Row {
  std::string_view names;
  ForeignOption fate;
};

constexpr Row ignored(std::string_view names, unsigned programs, OptionFate::Values values = kNone,
                      std::string_view tool = kMegatron) {
  return {names, {{.name = {}, .tool = tool, .values = values}, programs}};
}

// The kinds of runs that RunKind::has() accepts.
constexpr std::string_view kContextParallel = "context parallelism", kExperts = "experts",
                           kBelow16Bits = "products below 16 bits", kInterleaved = "interleaved stages";

/// When an option is ignored although it is refused otherwise: for some values (`plain`, `repeats`), and
/// except in some runs (`only`).
struct Unless {
  std::string_view plain = {}, only = {}, repeats = {};
};
constexpr Row refused(std::string_view names, unsigned programs, std::string_view remedy,
                      Unless unless = {}) {
  return {
      names,
      {{.name = {}, .remedy = remedy, .plain = unless.plain, .only = unless.only, .repeats = unless.repeats},
       programs}};
}

constexpr std::string_view kGroupRemedy =
    "a group has as many microbatches as the pipeline has stages; leave it out";
constexpr Unless kGroup = {.only = kInterleaved, .repeats = "pipeline-model-parallel-size"};

constexpr Row kRows[] = {
    // Options that choose which code runs and how it communicates.
    ignored("accumulate-allreduce-grads-in-fp32 apply-query-key-layer-scaling attention-softmax-in-fp32 "
            "check-for-large-grads check-for-spiky-loss cross-entropy-loss-fusion ddp-average-in-collective "
            "ddp-pad-buckets-for-high-nccl-busbw delay-param-gather deterministic-mode "
            "disable-bf16-reduced-precision-matmul disable-gloo-process-groups disable-tp-comm-bulk-dgrad "
            "disable-tp-comm-bulk-wgrad disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs "
            "disable-tp-comm-split-ag disable-tp-comm-split-rs init-model-with-meta-device "
            "keep-fp8-transpose-cache-when-using-custom-fsdp manual-gc mmap-warmup no-align-grad-reduce "
            "no-align-param-gather no-async-tensor-model-parallel-allreduce "
            "no-clone-scatter-output-in-embedding no-contiguous-buffers-in-local-ddp "
            "no-create-attention-mask-in-dataloader no-data-sharding no-delay-grad-reduce "
            "no-gradient-reduce-div-fusion no-manual-gc-eval no-persist-layer-norm no-pin-cpu-grads "
            "no-pin-cpu-params no-query-key-layer-scaling no-scatter-gather-tensors-in-pipeline "
            "overlap-p2p-communication-warmup-flush te-rng-tracker tp-comm-overlap-rs-dgrad "
            "use-contiguous-buffers-in-ddp "
            "use-contiguous-buffers-in-local-ddp use-cpu-initialization use-legacy-models use-mcore-models "
            "use-mpi use-ring-exchange-p2p use-torch-optimizer-for-cpu-offload",
            kTraining),
    ignored(
        "check-weight-hash-across-dp-replicas-interval cross-entropy-fusion-impl data-impl DDP-impl "
        "empty-unused-memory-level lazy-mpu-init manual-gc-interval memory-snapshot-path "
        "nccl-communicator-config-path num-dataset-builder-threads num-workers onnx-safe "
        "pipeline-model-parallel-comm-backend s3-cache-path sgd-momentum suggested-communication-unit-size "
        "tp-comm-bootstrap-backend tp-comm-overlap-cfg train-sync-interval wgrad-deferral-limit",
        kTraining, kOne),
    ignored(
        "bias-dropout-fusion bias-swiglu-fusion check-for-nan-in-loss-and-grad gradient-accumulation-fusion "
        "mmap-bin-files rope-fusion",
        kTraining, kMaybeOne),
    // Options for checkpoint files, reports and supervision.
    ignored("adlr-autoresume auto-detect-ckpt-format calc-ft-timeouts ckpt-assume-constant-structure "
            "ckpt-fully-parallel-load disable-straggler-on-startup enable-ft-package enable-one-logger "
            "log-batch-size-to-tensorboard log-memory-to-tensorboard log-num-zeros-in-grad log-params-norm "
            "log-progress log-timers-to-tensorboard log-validation-ppl-to-tensorboard "
            "log-world-size-to-tensorboard no-barrier-with-level-1-timing no-one-logger no-save-rng "
            "no-use-tokenizer-model-from-checkpoint-args one-logger-async profile record-memory-history "
            "run-workload-inspector-server test-mode use-persistent-ckpt-worker use-pytorch-profiler",
            kTraining),
    ignored("adlr-autoresume-interval app-tag-run-name app-tag-run-version config-logger-dir "
            "dist-ckpt-strictness error-injection-rate error-injection-type logging-level one-logger-entity "
            "one-logger-project one-logger-run-name rerun-mode result-rejected-tracker-filename "
            "straggler-ctrlr-port straggler-minmax-count tensorboard-log-interval tensorboard-queue-size "
            "timing-log-level timing-log-option wandb-entity wandb-exp-name wandb-project wandb-save-dir",
            kTraining, kOne),
    ignored("ckpt-fully-parallel-save log-learning-rate-to-tensorboard log-loss-scale-to-tensorboard",
            kTraining, kMaybeOne),
    ignored("profile-ranks", kTraining, kSeveral),
    // Options for models other than GPT.
    ignored("bert-no-binary-head", kTraining),
    ignored("mask-prob retriever-seq-length sample-rate short-seq-prob", kTraining, kOne),
    // Options of PaddleNLP and LLaMA-Factory.
    ignored("dataloader-num-workers fp16-opt-level model-type", kTraining | kFinetune, kOne, kPaddle),
    ignored("pipeline-parallel-config", kTraining, kOne, kPaddle),
    ignored("use-fused-rms-norm", kTraining | kFinetune, kMaybeOne, kPaddle),
    ignored("use-flash-attention", kPretrain | kFinetune, kMaybeOne, kPaddle),
    ignored(
        "autotuner-benchmark benchmark distributed-dataloader enable-linear-fused-grad-add flash-mask "
        "fuse-attention-ffn fuse-attention-qkv fuse-sequence-parallel-allreduce fused-linear-param-grad-add "
        "lazy recompute-use-reentrant skip-profile-timer unified-checkpoint use-fused-linear use-fused-rope",
        kPretrain | kFinetune, kMaybeOne, kPaddle),
    ignored("data-cache eval-accumulation-steps pp-recompute-interval rope-fusion-level",
            kPretrain | kFinetune, kOne, kPaddle),
    ignored("amp-custom-black-list amp-custom-white-list data-parallel-config sharding-parallel-config "
            "tensor-parallel-config",
            kPretrain | kFinetune, kSeveral, kPaddle),
    refused("virtual-pp-degree", kPretrain | kFinetune, "give --num-layers-per-virtual-pipeline-stage",
            {.plain = "1"}),
    refused("sep-parallel-degree", kPretrain | kFinetune, "give --context-parallel-size",
            {.plain = "1|0|-1"}),
    refused("pissa", kFinetune, "leave it out: an adapter begins as in plain LoRA", {.plain = "false"}),
    refused("weight-quantize-algo", kFinetune, "leave it out, or give --qlora: 8 bits"),
    ignored("per-device-eval-batch-size", kFinetune, kOne, kPaddle),
    ignored("disable-tqdm", kFinetune, kMaybeOne, kPaddle),
    ignored("dataset-num-proc ddp-timeout preprocessing-num-workers", kFinetune, kOne, kFactory),
    ignored("overwrite-cache plot-loss trust-remote-code", kFinetune, kMaybeOne, kFactory),
    // Options that the planner supports, but training ignores.
    ignored("attention-backend num-distributed-optimizer-instances transformer-impl", kPretrain, kOne),
    ignored("masked-softmax-fusion overlap-grad-reduce overlap-p2p-communication overlap-param-gather "
            "tp-comm-overlap use-flash-attn",
            kPretrain, kMaybeOne),
    ignored("recompute-modules", kPretrain, kSeveral),
    // Options that change the memory or time of a run on a GPU. The planner does not ignore them, because its
    // plan would then describe another run.
    ignored(
        "defer-embedding-wgrad-compute delay-wgrad-compute distribute-checkpointed-activations "
        "distribute-saved-activations enable-cuda-graph external-cuda-graph optimizer-cpu-offload "
        "overlap-cpu-optimizer-d2h-h2d overlap-param-gather-with-optimizer-step standalone-embedding-stage "
        "use-precision-aware-optimizer use-tp-pp-dp-mapping",
        kPretrain),
    ignored("microbatch-group-size-per-virtual-pipeline-stage optimizer-offload-fraction", kPretrain, kOne),
    ignored("cp-comm-type hierarchical-context-parallel-sizes", kPretrain, kSeveral),
    refused("cp-comm-type", kAutoplan, "only a ring (p2p) of keys and values is priced; leave it out",
            {.plain = "p2p", .only = kContextParallel}),
    refused("hierarchical-context-parallel-sizes", kAutoplan, "context ranks are one ring; leave it out",
            {.only = kContextParallel}),
    refused("enable-cuda-graph external-cuda-graph", kAutoplan,
            "give --software-features cuda_graphs in its place", {.plain = "none|false"}),
    refused("defer-embedding-wgrad-compute delay-wgrad-compute", kAutoplan,
            "a weight's gradient is priced where it arises; leave it out"),
    refused("distribute-checkpointed-activations", kAutoplan, "give --sequence-parallel"),
    refused("distribute-saved-activations", kAutoplan,
            "each tensor rank keeps the whole of a recomputed layer's input; give --sequence-parallel"),
    refused("microbatch-group-size-per-virtual-pipeline-stage", kAutoplan, kGroupRemedy, kGroup),
    refused("optimizer-cpu-offload", kAutoplan,
            "the optimizer's state is on the device; give --use-distributed-optimizer"),
    refused("optimizer-offload-fraction", kAutoplan, "the optimizer's state is on the device; leave it out",
            {.plain = "1|1.0"}),
    refused("overlap-cpu-optimizer-d2h-h2d", kAutoplan,
            "the optimizer's state is on the device; leave it out"),
    refused("overlap-param-gather-with-optimizer-step", kAutoplan,
            "the optimizer's step is priced by itself; leave it out"),
    refused("standalone-embedding-stage", kAutoplan, "give --account-for-embedding-in-pipeline-split"),
    refused("use-tp-pp-dp-mapping", kAutoplan,
            "ranks are numbered tensor, context, data, pipeline; leave it out"),
    // Options for the router, the losses, the scale of attention, the kernels and the log. They do not change
    // the plan.
    ignored("moe-apply-probs-on-input moe-per-layer-logging moe-router-fusion moe-router-padding-for-fp8 "
            "moe-router-pre-softmax",
            kAutoplan),
    ignored("moe-deepep-num-sms moe-router-bias-update-rate moe-router-dtype moe-router-topk-scaling-factor "
            "moe-token-drop-policy moe-z-loss-coeff mscale mscale-all-dim mtp-loss-scaling-factor "
            "rotary-scaling-factor",
            kAutoplan, kOne),
    ignored("moe-grouped-gemm moe-permute-fusion", kAutoplan, kMaybeOne),
    // Options that change a run, but not its plan.
    ignored("calculate-per-token-loss ckpt-convert-update-legacy-dist-opt-format data-parallel-random-init "
            "init-method-xavier-uniform no-initialization replication",
            kAutoplan),
    ignored("ckpt-convert-format ckpt-convert-save decoupled-lr decoupled-min-lr "
            "end-weight-decay fp8-amax-compute-algo fp8-amax-history-len fp8-interval fp8-margin "
            "mamba-* non-persistent-* persistent-save-interval pretrained-checkpoint relative-attention-* "
            "replication-factor replication-jump start-weight-decay warmup weight-decay-incr-style",
            kAutoplan, kOne),
    ignored("iterations-to-skip", kAutoplan, kSeveral),
    // Options that would change the result.
    refused("account-for-*", kPretrain, "give --pipeline-layers, or the layers are divided evenly"),
    refused("apply-residual-connection-post-layernorm", kTraining,
            "leave it out: the residual branches off before the norm"),
    refused("batch-size", kTraining, "give --micro-batch-size"),
    refused("calculate-per-token-loss", kPretrain, "leave it out: the loss is the mean of each micro-batch"),
    refused("ckpt-convert-*", kPretrain, "use megalith-convert"),
    refused("cpu-offloading cpu-offloading-num-layers fine-grained-activation-offloading", kTraining,
            "leave it out: activations stay where they are computed", {.plain = "0|false"}),
    refused("data-parallel-random-init", kPretrain, "leave it out: replicas begin equal"),
    refused("data-parallel-sharding-strategy use-custom-fsdp", kPretrain, "give --use-distributed-optimizer"),
    refused("use-torch-fsdp2", kTraining, "give --use-distributed-optimizer"),
    refused("decoder-num-layers", kTraining, "give --num-layers"),
    refused("encoder-num-layers", kTraining, "give --num-layers", {.repeats = "num-layers"}),
    refused("decoder-seq-length", kTraining, "give --seq-length"),
    refused("encoder-seq-length", kTraining, "give --seq-length", {.repeats = "seq-length"}),
    refused("decoupled-*", kPretrain, "give one --lr and --min-lr for all parameters"),
    refused("decrease-batch-size-if-needed fp32-residual-connection mrope-section retro-add-retriever spec",
            kTraining, "leave it out"),
    refused("first-last-layers-bf16", kPretrain, "leave it out"),
    refused("first-last-layers-bf16", kAutoplan, "leave it out", {.only = kBelow16Bits}),
    refused("iterations-to-skip no-initialization replication* rotary-scaling-factor", kPretrain,
            "leave it out"),
    refused("encoder-pipeline-model-parallel-size", kTraining, "give --pipeline-model-parallel-size",
            {.plain = "0"}),
    refused("encoder-tensor-model-parallel-size", kTraining, "give --tensor-model-parallel-size",
            {.plain = "0"}),
    refused("end-weight-decay start-weight-decay", kPretrain, "give --weight-decay"),
    refused("exp-avg-sq-dtype", kTraining,
            "leave it out: the second moment is fp32, as a step changes it by less than bf16 can hold",
            {.plain = "fp32|torch.float32"}),
    refused("experimental-attention-variant linear-attention-type window-size", kTraining,
            "leave it out: a position sees all before it"),
    refused("expert-tensor-parallel-size moe-*", kPretrain,
            "leave it out: the feed-forward block is dense (megalith-autoplan plans mixtures of experts for "
            "Megatron-LM)"),
    refused("moe-*", kAutoplan, "it is not planned; leave it out", {.only = kExperts}),
    refused("moe-flex-dispatcher-backend", kAutoplan, "it is not planned; leave it out",
            {.plain = "deepep|hybridep", .only = kExperts}),
    refused("moe-hybridep-num-sms", kAutoplan, "it is not planned; leave it out",
            {.plain = "16", .only = kExperts}),
    refused("moe-upcycling-granularity", kAutoplan, "it is not planned; leave it out",
            {.plain = "2", .only = kExperts}),
    refused("fp16-lm-cross-entropy", kTraining, "leave it out: the loss is computed in fp32"),
    refused("fp4-* fp8-* no-fp8-wgrad", kPretrain, "train without it"),
    refused("fp4-* fp8-* no-fp8-wgrad", kAutoplan, "train without it", {.only = kBelow16Bits}),
    refused("fp8-wgrad", kAutoplan, "train without it", {.plain = "true", .only = kBelow16Bits}),
    refused("grad-reduce-in-bf16", kPretrain, "leave it out: gradients are reduced in fp32"),
    refused("heterogeneous-*", kTraining, "leave it out: all layers have one shape"),
    refused("hybrid-*", kTraining, "leave it out: every layer has attention and a feed-forward block",
            {.plain = "0|0.0"}),
    refused("is-hybrid-model", kTraining, "leave it out: every layer has attention and a feed-forward block"),
    refused("mamba-*", kPretrain, "leave it out: every layer has attention and a feed-forward block"),
    refused("init-method-xavier-uniform", kPretrain,
            "leave it out: weights are drawn from a normal distribution"),
    refused("kv-lora-rank", kPretrain, "leave it out: keys and values are not compressed"),
    refused("multi-latent-attention", kPretrain, "leave it out"),
    refused("main-grads-dtype", kTraining, "leave it out: gradients are summed in fp32",
            {.plain = "fp32|torch.float32"}),
    refused("main-params-dtype", kTraining, "leave it out: the masters are fp32",
            {.plain = "fp32|torch.float32"}),
    refused("mtp-*", kTraining, "leave it out: one token is predicted"),
    refused("no-position-embedding", kTraining,
            "leave it out beside --position-embedding-type rope; else give --position-embedding-type none"),
    refused("non-persistent-* persistent-save-interval", kPretrain, "give --save-interval"),
    refused("num-virtual-stages-per-pipeline-rank", kTraining,
            "give --num-layers-per-virtual-pipeline-stage, or --pipeline-layers"),
    refused("pipeline-model-parallel-split-rank", kTraining, "leave it out: there is no encoder"),
    refused("pretrained-checkpoint", kPretrain, "give --load DIR --finetune"),
    refused("relative-attention-*", kPretrain, "give --position-embedding-type rope"),
    refused("use-mp-args-from-checkpoint-args", kTraining, "give the parallel sizes"),
    refused("use-precision-aware-optimizer", kAutoplan, "leave it out: it is not planned"),
    refused("vocab-extra-ids", kTraining, "give --vocab-size with the extra ids counted in", {.plain = "0"}),
    refused("warmup", kPretrain, "give --lr-warmup-fraction"),
    refused("weight-decay-incr-style", kPretrain, "leave it out: the weight decay is constant"),
    // Arguments of a log that differ from the planner's options, either in their name, or because only some
    // of an option's values can be priced in a log.
    refused("microbatch-group-size-per-vp-stage", kLog, kGroupRemedy, kGroup),
    refused("exp-avg-dtype", kLog, "it is not priced", {.plain = "fp32|torch.float32"}),
    refused("fp8-recipe", kLog, "it is not priced",
            {.plain = "tensorwise|delayed|blockwise|mxfp8", .only = kBelow16Bits}),
    refused("num-distributed-optimizer-instances", kLog,
            "the optimizer's state is sharded over all data ranks", {.plain = "1"}),
    refused("optimizer", kLog, "only AdamW is supported", {.plain = "adam"}),
    refused("rampup-batch-size", kLog, "a plan is for one global batch"),
    // Options for fine-tuning.
    refused("data-path", kFinetune, "give --data with records; megalith-pretrain trains on token datasets"),
    refused("deepspeed fsdp", kFinetune, "give --sharding stage1 or stage2"),
    refused("load-in-4bit quantization-bit", kFinetune, "give --qlora: 8 bits"),
    refused("lora-bias use-dora", kFinetune, "leave it out"),
    refused("modules-to-save", kFinetune, "leave it out: only the adapter is trained"),
    refused("p-tuning", kFinetune, "give --lora True, or --prefix-tuning"),
    refused("prompt-tuning ptuning", kFinetune, "give --lora True"),
    // Options for preprocessing. Here workers share one input without temporary files, and always keep its
    // order.
    ignored("keep-sequential-samples", kPreprocess),
    ignored("partitions", kPreprocess, kOne),
    // Its other implementation of the same tokenizers (tools/preprocess_data_fast.py), and its search for the
    // best number of processes.
    ignored("use-gigatoken", kTraining | kPreprocess),
    refused("find-optimal-num-workers", kPreprocess,
            "leave it out: without --workers as many threads run as the process may use"),
    refused("max-documents workers-to-check", kPreprocess,
            "leave it out: it belongs to --find-optimal-num-workers, and all documents are read"),
    refused("multimodal", kMerge, "leave it out: datasets with sequence modes cannot be joined"),
};

std::vector<ForeignOption> options_in(unsigned programs) {
  std::vector<ForeignOption> own;
  std::copy_if(foreign_options().begin(), foreign_options().end(), std::back_inserter(own),
               [&](const ForeignOption& option) { return (option.programs & programs) != 0; });
  return own;
}

}  // namespace

bool RunKind::has(std::string_view kind) const {
  if (kind == kContextParallel) return context;
  if (kind == kExperts) return experts;
  if (kind == kInterleaved) return interleaved;
  return kind == kBelow16Bits && narrow;
}

const std::vector<ForeignOption>& foreign_options() {
  static const std::vector<ForeignOption> kAll = one_by_one<ForeignOption>(kRows);
  return kAll;
}

std::vector<OptionFate> fates_in(Program program) {
  const std::vector<ForeignOption> own = options_in(program);
  return {own.begin(), own.end()};
}

const ForeignOption* logged_option(std::string_view name) {
  static const std::vector<ForeignOption> kLogged = options_in(kAutoplan | kLog);
  return find_fate(kLogged, option_key(name));
}

}  // namespace megalith
