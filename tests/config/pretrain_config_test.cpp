#include "libcore/config/pretrain_config.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "libcore/base/machine/numa.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/text.h"
#include "libcore/dialects/megatron/fates.h"
#include "libcore/io/files/file.h"
#include "libcore/options/cli.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"

namespace megalith {
namespace {

std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> list;
  for (const std::string& word : split(line, ' '))
    if (!trim(word).empty()) list.emplace_back(trim(word));
  return list;
}

/// The configuration for the options in `line`, after finish() and the checks. Log lines are added to
/// `logged`.
PretrainConfig given(const std::string& line, std::vector<std::string>* logged = nullptr) {
  PretrainConfig config;
  Options options("pretrain", "Train.");
  config.add_to(options);
  options.fates([] { return fates_in(kPretrain); });
  EXPECT_FALSE(options.read(words(line)));
  const test::LogLines log;
  options.check();
  if (logged) logged->insert(logged->end(), log.lines.begin(), log.lines.end());
  return config;
}

std::string complaint(const std::string& line) {
  try {
    given(line);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return {};
}

/// The required options; a test adds the ones that it is about.
constexpr const char* kSmall =
    "--num-layers 4 --hidden-size 96 --num-attention-heads 6 --seq-length 32 --micro-batch-size 2 --lr 1e-3 "
    "--train-iters 100 ";

std::string small() {
  return kSmall;
}

// If an option is given twice, in a script and by the user who adds to its line, the last one counts, as with
// argparse.
TEST(PretrainConfig, TakesTheLastRamp) {
  PretrainConfig config;
  Options options("pretrain", "Train.");
  config.add_to(options);
  options.read({"--rampup-batch-size", "4", "4", "40", "--rampup-batch-size", "8", "8", "16"});
  EXPECT_EQ(config.train.rampup, (std::vector<std::string>{"8", "8", "16"}));
}

TEST(PretrainConfig, ReadsCodeParrotsCommand) {
  const PretrainConfig c = given(
      "--tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --num-layers 12 --hidden-size 768 "
      "--num-attention-heads 12 "
      "--seq-length 1024 --max-position-embeddings 1024 --micro-batch-size 12 --global-batch-size 192 --lr "
      "0.0005 "
      "--train-iters 150000 --lr-decay-iters 150000 --lr-decay-style cosine --lr-warmup-iters 2000 "
      "--weight-decay .1 "
      "--adam-beta2 .999 --fp16 --log-interval 10 --save-interval 2000 --eval-interval 200 --eval-iters 10 "
      "--vocab-file vocab.json "
      "--merge-file merges.txt --save ckpt --load ckpt --data-path codeparrot_content_document "
      "--tensorboard-dir tensorboard");
  EXPECT_EQ(c.model.layers, 12);
  EXPECT_EQ(c.model.ffn_hidden, 3072);
  EXPECT_EQ(c.model.kv_channels, 64);
  EXPECT_EQ(c.model.kv_heads(), 12);
  EXPECT_EQ(c.model.activation(), ActivationFunction::kGeluTanh);
  EXPECT_TRUE(c.model.has_qkv_bias());
  EXPECT_EQ(c.train.global_batch, 192);
  EXPECT_EQ(c.train.weight_decay, 0.1);
  EXPECT_EQ(c.train.decay, LrDecay::kCosine);
  EXPECT_TRUE(c.train.fp16);
  EXPECT_EQ(c.tokenizer.type, "GPT2BPETokenizer");
  EXPECT_EQ(c.data.data_path, std::vector<std::string>{"codeparrot_content_document"});
  EXPECT_EQ(c.checkpoint.save_interval, 2000);
}

TEST(PretrainConfig, ReadsPaddleNlpsSpellings) {
  const PretrainConfig c = given(
      "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --save out --split 949,50,1 "
      "--max_seq_length 128 "
      "--per_device_train_batch_size 1 --use_flash_attention 1 "
      "--use_fused_rms_norm 0 --fp16 "
      "--fp16_opt_level O2 --scale_loss 1024 --learning_rate 0.00001 --min_learning_rate 0.000005 "
      "--lr_scheduler_type cosine "
      "--max_steps 10000 --save_steps 5000 --weight_decay 0.01 --warmup_ratio 0.01 --max_grad_norm 1.0 "
      "--logging_steps 20--dataloader_num_workers 1 --sharding stage1 --eval_steps 1000 "
      "--recompute 1 --device gpu --tensor_parallel_degree 2 --pipeline_parallel_degree "
      "2 "
      "--gradient_accumulation_steps 32");
  EXPECT_EQ(c.checkpoint.save, "out");
  EXPECT_EQ(c.model.seq_length, 128);
  EXPECT_EQ(c.train.initial_loss_scale, 1024);
  EXPECT_EQ(c.train.lr, 1e-5);
  EXPECT_EQ(c.train.min_lr, 5e-6);
  EXPECT_EQ(c.train.iters, 10000);
  EXPECT_EQ(c.train.warmup_in_samples(), 100 * 32);
  EXPECT_EQ(c.train.log_interval, 20);
  EXPECT_EQ(c.train.recompute, Recompute::kFull);
  EXPECT_EQ(c.train.global_batch, 32);
  EXPECT_EQ(c.parallel.tensor, 2);
  EXPECT_EQ(c.parallel.pipeline, 2);
  EXPECT_EQ(c.parallel.world, 4);
  EXPECT_EQ(c.parallel.sharding, Sharding::kOptimizer);
}

TEST(PretrainConfig, IgnoresMegatronOptionsOfNoMeaning) {
  EXPECT_EQ(
      complaint(small() +
                "--DDP-impl local --num-workers 2 --no-masked-softmax-fusion "
                "--use-flash-attn "
                "--use-mcore-models --transformer-impl local --no-async-tensor-model-parallel-allreduce "
                "--attention-softmax-in-fp32 --data-impl mmap --log-throughput --no-rope-fusion "
                "--ckpt-format torch"),
      "");
}

// Megatron-LM 0.7 to 0.9 selected torch_dist or zarr by --use-dist-ckpt and --dist-ckpt-format, later
// versions by --ckpt-format.
TEST(PretrainConfig, TakesBothNamesOfADistributedCheckpoint) {
  EXPECT_EQ(given(small() + "--use-dist-ckpt").checkpoint.format, checkpoint_format("torch_dist"));
  EXPECT_EQ(given(small() + "--no-use-dist-ckpt").checkpoint.format, checkpoint_format("megalith"));
  EXPECT_EQ(given(small() + "--use-dist-ckpt --dist-ckpt-format torch_dist").checkpoint.format,
            checkpoint_format("torch_dist"));
  EXPECT_EQ(given(small() + "--dist-ckpt-format torch_dist").checkpoint.format,
            checkpoint_format("torch_dist"));
  EXPECT_EQ(complaint(small() + "--use-dist-ckpt --dist-ckpt-format zarr"),
            "--dist-ckpt-format zarr is not written; give torch_dist");
  EXPECT_EQ(complaint(small() + "--use-dist-ckpt --ckpt-format torch"),
            "--use-dist-ckpt and --ckpt-format torch contradict each other; give one of them");
}

TEST(PretrainConfig, RefusesWithARemedyWhatWouldChangeTheResult) {
  EXPECT_EQ(complaint(small() + "--decoupled-lr 1 --apply-layernorm-1p --dataloader-type cyclic "
                                "--optimizer sgd --mrope-section 1"),
            "--decoupled-lr is not supported; give one --lr and --min-lr for all parameters\n  "
            "--mrope-section is not supported; leave it out\n  "
            "--dataloader-type \"cyclic\": wanted one of single\n  "
            "--optimizer \"sgd\": wanted one of adam\n  "
            "--apply-layernorm-1p is not supported; train with plain --normalization LayerNorm");
}

TEST(PretrainConfig, SaysEverythingThatIsMissing) {
  EXPECT_EQ(complaint(""),
            "--num-layers is missing\n  --hidden-size is missing\n  --num-attention-heads is "
            "missing\n  --seq-length is missing\n  "
            "--micro-batch-size is missing\n  --train-iters is missing (or --train-samples, or "
            "--num-epochs)\n  --lr is missing");
}

// Megatron's validate_args: ffn_hidden_size = int((4 * hidden_size * 2 / 3) / 64) * 64
TEST(PretrainConfig, DerivesSwigluWidthAsMegatron) {
  EXPECT_EQ(given(small() + "--hidden-size 4096 --num-attention-heads 32 --swiglu").model.ffn_hidden, 10880);
  EXPECT_EQ(given(small() + "--hidden-size 768 --swiglu").model.ffn_hidden, 2048);
  EXPECT_EQ(given(small() + "--hidden-size 768 --swiglu --ffn-hidden-size 5").model.ffn_hidden, 5);
}

TEST(PretrainConfig, ChoosesTheActivation) {
  using F = ActivationFunction;
  for (const auto& [options, function] : {std::pair{"--no-bias-gelu-fusion", F::kGelu},
                                          {"--no-bias-gelu-fusion --openai-gelu", F::kGeluTanh},
                                          {"--swiglu", F::kSilu},
                                          {"--swiglu --hidden-act swish", F::kSilu},
                                          {"--squared-relu", F::kSquaredRelu},
                                          {"--hidden-act quick_gelu", F::kQuickGelu},
                                          {"--hidden-act relu", F::kRelu},
                                          {"--hidden-act silu", F::kSilu},
                                          {"--hidden-act gelu", F::kGelu},
                                          {"--hidden-act gelu_pytorch_tanh --openai-gelu", F::kGeluTanh}})
    EXPECT_EQ(given(small() + options).model.activation(), function) << options;
  EXPECT_FALSE(given(small() + "--hidden-act silu").model.swiglu);
}

TEST(PretrainConfig, RefusesUnknownAndContradictingActivations) {
  for (const auto& [options, message] :
       {std::pair{"--hidden-act mish", "--hidden-act is \"mish\", wanted one of gelu_new, "},
        {"--hidden-act relu --swiglu", "--swiglu and --hidden-act contradict each other"},
        {"--hidden-act gelu --openai-gelu", "--openai-gelu and --hidden-act contradict each other"},
        {"--swiglu --squared-relu", "--swiglu and --squared-relu contradict each other"}})
    EXPECT_NE(complaint(small() + options).find(message), std::string::npos) << complaint(small() + options);
}

TEST(PretrainConfig, DerivesBiases) {
  const ModelConfig without = given(small() + "--disable-bias-linear").model;
  EXPECT_FALSE(without.linear_bias);
  EXPECT_FALSE(without.has_qkv_bias());
  EXPECT_TRUE(given(small() + "--disable-bias-linear --add-qkv-bias").model.has_qkv_bias());
  const ModelConfig no_qkv = given(small() + "--no-qkv-bias").model;
  EXPECT_TRUE(no_qkv.linear_bias);
  EXPECT_FALSE(no_qkv.has_qkv_bias());
}

// Megatron's _vocab_size_with_padding: 50257 -> 50304 (as its documentation prints), with tp 8 -> 51200.
TEST(PretrainConfig, PadsTheVocabularyAsMegatron) {
  ModelConfig model;
  model.vocab_size = 50257;
  EXPECT_EQ(model.padded_vocab(), 50304);
  EXPECT_EQ(model.padded_vocab(8), 51200);
  model.vocab_size = 128;
  EXPECT_EQ(model.padded_vocab(), 128);
}

TEST(PretrainConfig, ChecksTheModelsShape) {
  EXPECT_EQ(complaint(small() + "--hidden-size 100"),
            "--hidden-size 100 is not a multiple of --num-attention-heads 6; nearest that work: 96, 102; or "
            "give --kv-channels");
  EXPECT_EQ(complaint(small() + "--hidden-size 100 --kv-channels 32"), "");
  EXPECT_EQ(complaint(small() + "--group-query-attention --num-query-groups 4"),
            "--num-attention-heads 6 is not a multiple of --num-query-groups 4; nearest that work: 4, 8");
  EXPECT_EQ(given(small() + "--group-query-attention --num-query-groups 3").model.kv_heads(), 3);
  EXPECT_EQ(complaint(small() + "--max-position-embeddings 16"),
            "--max-position-embeddings 16 is less than --seq-length 32; raise the first or lower the second");
  EXPECT_EQ(complaint(small() + "--position-embedding-type rope --kv-channels 9"),
            "--kv-channels 9 times --rotary-percent 1 gives 9 rotated channels; wanted an even number");
  EXPECT_EQ(given(small() + "--use-rotary-position-embeddings").model.position, PositionEmbedding::kRope);
}

TEST(PretrainConfig, ChecksRotations) {
  const std::string rope = small() + "--position-embedding-type rope --kv-channels 4 ";
  EXPECT_EQ(complaint(rope + "--no-rope-freq 4"), "");
  EXPECT_EQ(complaint(rope + "--no-rope-freq 5"),
            "--no-rope-freq 5 leaves every layer rotated: there are 4; leave it out, or give 4 at most");
  EXPECT_EQ(complaint(rope + "--rope-scaling-type yarn"), "");
  EXPECT_EQ(complaint(small() + "--rope-scaling-type yarn"),
            "--rope-scaling-type yarn has no effect without --position-embedding-type rope; leave it out");
  EXPECT_EQ(complaint(rope + "--rope-scaling-type dynamic --use-rope-scaling"),
            "--rope-scaling-type dynamic and --use-rope-scaling stretch the angles twice; give one of them");
  EXPECT_EQ(complaint(rope + "--rope-scaling-type yarn --rotary-seq-len-interpolation-factor 2"),
            "--rope-scaling-type yarn and --rotary-seq-len-interpolation-factor stretch the angles twice; "
            "give one of "
            "them");
  EXPECT_EQ(complaint(rope + "--rope-scaling-type yarn --rope-beta-fast 1 --rope-beta-slow 2"),
            "--rope-beta-fast 1 is less than --rope-beta-slow 2");
  EXPECT_EQ(complaint(rope + "--rope-scaling-type dynamic --rope-attention-factor 2 --rope-beta-fast 16"),
            "--rope-attention-factor has no effect without --rope-scaling-type yarn or longrope; leave it "
            "out\n  "
            "--rope-beta-fast has no effect without --rope-scaling-type yarn; leave it out");
  EXPECT_EQ(complaint(rope + "--rope-beta-slow 2 --no-rope-truncate"),
            "--rope-beta-slow has no effect without --rope-scaling-type yarn; leave it out\n  "
            "--no-rope-truncate has no effect without --rope-scaling-type yarn; leave it out");
  EXPECT_EQ(complaint(rope + "--rotary-percent 0.1"),
            "--rotary-percent 0.1 rotates none of the 4 channels of a head; raise it, or give "
            "--position-embedding-type none");
  EXPECT_EQ(complaint(rope + "--rope-scaling-type dynamic --rotary-percent 0.5"),
            "--rope-scaling-type dynamic needs more than one pair of rotated channels");
  const std::string longrope = rope + "--rope-scaling-type longrope --rope-long-factors 1,2.5 ";
  EXPECT_EQ(complaint(longrope + "--rope-short-factors 1,1"), "");
  EXPECT_EQ(complaint(longrope), "--rope-short-factors \"\": wanted 2 positive numbers separated by commas");
  EXPECT_EQ(complaint(longrope + "--rope-short-factors 1,-1"),
            "--rope-short-factors \"1,-1\": wanted 2 positive numbers separated by commas");
  EXPECT_EQ(complaint(longrope + "--rope-short-factors 1"),
            "--rope-short-factors has 1 numbers, wanted one for each of the 2 pairs of rotated channels");
  EXPECT_EQ(complaint(rope + "--rope-long-factors 1,1"),
            "--rope-long-factors has no effect without --rope-scaling-type longrope; leave it out");
}

TEST(PretrainConfig, TakesOneNormOnlyWithParallelBranches) {
  EXPECT_EQ(complaint(small() + "--parallel-residual --parallel-norms 1"), "");
  EXPECT_EQ(complaint(small() + "--parallel-norms 1"),
            "--parallel-norms 1 has no effect without --parallel-residual; leave it out");
}

TEST(PretrainConfig, ChecksTheLayout) {
  EXPECT_EQ(
      complaint(small() + "--tensor-model-parallel-size 4"),
      "--num-attention-heads 6 is not a multiple of --tensor-model-parallel-size 4; nearest that work: 4, 8");
  EXPECT_EQ(complaint(small() + "--pipeline-model-parallel-size 3"),
            "--num-layers 4 is not a multiple of --pipeline-model-parallel-size 3; nearest that work: 3, 6; "
            "or give --pipeline-layers");
  EXPECT_EQ(
      complaint(small() + "--world-size 6 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2"),
      "--tensor-model-parallel-size 2 * --pipeline-model-parallel-size 2 = 4 does not divide the 6 ranks; "
      "nearest that work: 4, 8");
  EXPECT_EQ(complaint(small() + "--world-size 8 --tensor-model-parallel-size 2 --data-parallel-size 2"),
            "--tensor-model-parallel-size 2 * --pipeline-model-parallel-size 1 * --data-parallel-size 2 = 4 "
            "is not the number of ranks, "
            "8; leave --data-parallel-size out, or give 4");
  EXPECT_EQ(complaint(small() + "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3"),
            "--num-layers 4 gives 2 layers to each of 2 pipeline ranks, not a multiple of "
            "--num-layers-per-virtual-pipeline-stage 3");
  const PretrainConfig c = given(
      small() + "--world-size 12 --local-world-size 4 --tensor-model-parallel-size 2 --sequence-parallel");
  EXPECT_EQ(c.parallel.data, 6);
  EXPECT_TRUE(c.parallel.sequence);
  EXPECT_EQ(c.train.global_batch, 12);
  EXPECT_FALSE(given(small() + "--sequence-parallel")
                   .parallel.sequence);  // Megatron turns it off without tensor parallelism
}

TEST(PretrainConfig, CountsTheRanksOfOneProcess) {
  const PretrainConfig c = given(small() + "--nproc 6 --tensor-model-parallel-size 2");
  EXPECT_EQ(c.parallel.world, 6);
  EXPECT_EQ(c.parallel.local_world, 6);
  EXPECT_EQ(c.parallel.data, 3);
  EXPECT_EQ(c.train.global_batch, 6);
  EXPECT_EQ(given(small() + "--nproc-per-node 2").parallel.world, 2);
  EXPECT_EQ(given(small() + "--nproc_per_node=2").parallel.world, 2);
  EXPECT_EQ(given(small()).parallel.nproc, 0);
  EXPECT_EQ(given(small()).parallel.world, 1);
  EXPECT_EQ(given(small() + "--nproc auto").parallel.world,
            std::min(static_cast<int>(numa_nodes().size()), usable_cpus()));
  EXPECT_EQ(complaint(small() + "--nproc all"), "--nproc \"all\": wanted an integer or auto or gpu");
  {
    const test::Variable shown("CUDA_VISIBLE_DEVICES", "0,2");
    EXPECT_EQ(given(small() + "--nproc_per_node gpu").parallel.world, 2);
    const test::Variable twice("CUDA_VISIBLE_DEVICES", "0,0");
    EXPECT_EQ(complaint(small() + "--nproc gpu"),
              "--nproc gpu: CUDA_VISIBLE_DEVICES=\"0,0\" names no device, or one of them twice; wanted a "
              "list such as 0,2; give a number, or auto for one rank a NUMA node");
  }
  EXPECT_EQ(complaint(small() + "--nproc -1"), "--nproc -1: wanted between 0 and 1024");
  EXPECT_EQ(complaint(small() + "--nproc 3 --tensor-model-parallel-size 2"),
            "--tensor-model-parallel-size 2 * --pipeline-model-parallel-size 1 = 2 does not divide the 3 "
            "ranks; nearest that work: 2, 4");
  EXPECT_EQ(given(small()).parallel.timeout_minutes, 10);
  EXPECT_EQ(given(small() + "--distributed-timeout-minutes 3").parallel.timeout_minutes, 3);
  EXPECT_EQ(given(small() + "--distributed-timeout-minutes 3").parallel.peer_timeout(),
            std::chrono::minutes(3));
  const ParallelConfig both =
      given(small() + "--distributed-timeout-minutes 3 --distributed-timeout-seconds-after-init 7").parallel;
  EXPECT_EQ(both.join_timeout(), std::chrono::minutes(3));
  EXPECT_EQ(both.peer_timeout(), std::chrono::seconds(7));
}

TEST(PretrainConfig, ReadsTheShardingInBothSpellings) {
  EXPECT_EQ(given(small()).parallel.sharding, Sharding::kNone);
  EXPECT_FALSE(given(small()).parallel.sharded());
  const ParallelConfig first = given(small() + "--use-distributed-optimizer").parallel;
  EXPECT_EQ(first.sharding, Sharding::kOptimizer);
  EXPECT_TRUE(first.sharded());
  EXPECT_TRUE(given(small() + "--sharding stage1").parallel.distributed_optimizer);
  EXPECT_EQ(given(small() + "--sharding stage2 --use-distributed-optimizer").parallel.sharding,
            Sharding::kGradients);
  EXPECT_EQ(
      complaint(small() + "--sharding stage2 --pipeline-model-parallel-size 2"),
      "--sharding stage2 needs --pipeline-model-parallel-size 1, not 2: each micro-batch's gradients are "
      "sharded as soon as it is done; give --sharding stage1");
  EXPECT_EQ(
      complaint(small() + "--sharding stage3"),
      "--sharding stage3 is not supported: parameters are not sharded over the data-parallel ranks; give "
      "--sharding stage2 or stage1, or shard them with --tensor-model-parallel-size");
}

TEST(PretrainConfig, ReadsTheDepthOfEveryStage) {
  const ParallelConfig c = given(small() + "--pipeline-model-parallel-size 2 --pipeline-layers 1,3").parallel;
  EXPECT_EQ(c.pipeline_layers, std::vector<std::string>{"1,3"});
  const ParallelConfig ends = given(small() +
                                    "--pipeline-model-parallel-size 2 --decoder-first-pipeline-num-layers 1 "
                                    "--decoder-last-pipeline-num-layers 3")
                                  .parallel;
  EXPECT_EQ(ends.first_layers, 1);
  EXPECT_EQ(ends.last_layers, 3);
  EXPECT_EQ(complaint(small() + "--pipeline-model-parallel-size 2 --pipeline-layers 1,2"),
            "--pipeline-layers 1,2 adds up to 3 layers, not to --num-layers 4; give the parts 1 more");
}

TEST(PretrainConfig, ChecksTheMicroBatchesOfAnInterleavedPipeline) {
  const std::string interleaved =
      small() + "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 ";
  EXPECT_EQ(complaint(interleaved + "--global-batch-size 8"), "");
  EXPECT_EQ(
      complaint(interleaved + "--data-parallel-size 3 --global-batch-size 18"),
      "--global-batch-size 18 gives each rank 3 micro-batches, not a multiple of "
      "--pipeline-model-parallel-size 2, as an interleaved pipeline requires; nearest that work: 12, 24");
  EXPECT_NE(complaint(small() + "--pipeline-model-parallel-size 2 --pipeline-layers 1,1,1,1"), "");
  EXPECT_EQ(complaint(small() + "--pipeline-model-parallel-size 2 --global-batch-size 6"), "");
  EXPECT_EQ(complaint(small() + "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2"),
            "");  // one chunk per rank
}

TEST(PretrainConfig, SaysEverythingThatIsWrongWithALayout) {
  EXPECT_EQ(
      complaint(small() +
                "--group-query-attention --num-query-groups 3 --ffn-hidden-size 250 --seq-length 33 "
                "--sequence-parallel --tensor-model-parallel-size 4 --pipeline-model-parallel-size 3 "
                "--nproc 16 --global-batch-size 5 --sharding stage2"),
      "--tensor-model-parallel-size 4 * --pipeline-model-parallel-size 3 = 12 does not divide the 16 "
      "ranks; nearest that work: 12, 24\n  "
      "--sharding stage2 needs --pipeline-model-parallel-size 1, not 3: each micro-batch's gradients are "
      "sharded as soon as it is done; give --sharding stage1\n  "
      "--num-attention-heads 6 is not a multiple of --tensor-model-parallel-size 4; nearest that work: "
      "4, 8\n  "
      "--num-query-groups 3 is not a multiple of --tensor-model-parallel-size 4; nearest that work: 4\n  "
      "--ffn-hidden-size 250 is not a multiple of --tensor-model-parallel-size 4; nearest that work: "
      "248, 252\n  "
      "--seq-length 33 is not a multiple of --tensor-model-parallel-size 4; nearest that work: 32, 36\n  "
      "--num-layers 4 is not a multiple of --pipeline-model-parallel-size 3; nearest that work: 3, 6; or "
      "give --pipeline-layers\n  "
      "--global-batch-size 5 is not a multiple of --micro-batch-size 2 * data-parallel size 1; nearest "
      "that work: 4, 6");
}

TEST(PretrainConfig, RefusesPartsWithoutTheOptionThatTheyBelongTo) {
  EXPECT_EQ(complaint(small() + "--window-attn-skip-freq 4 --max-window-layers 1"),
            "--window-attn-skip-freq 4 has no effect without --sliding-window; leave it out\n  "
            "--max-window-layers 1 has no effect without --sliding-window; leave it out");
  const std::string window = small() + "--sliding-window 5 ";
  EXPECT_EQ(complaint(window + "--window-attn-skip-freq 4 --max-window-layers 2"), "");
  EXPECT_EQ(
      complaint(window + "--window-attn-skip-freq 5"),
      "--window-attn-skip-freq 5 leaves every layer the window: there are 4; leave it out, or give 4 at "
      "most");
  EXPECT_EQ(complaint(window + "--window-attn-skip-freq 1"),
            "--sliding-window 5 has no effect: --window-attn-skip-freq 1 leaves none of the 4 layers the "
            "window");
  EXPECT_EQ(complaint(window + "--max-window-layers 4"),
            "--sliding-window 5 has no effect: --max-window-layers 4 leaves none of the 4 layers the window");
  EXPECT_EQ(complaint(small() + "--qk-norm-all-heads --normalization RMSNorm"),
            "--qk-norm-all-heads has no effect without --qk-layernorm; give both");
  EXPECT_EQ(complaint(small() + "--qk-norm-all-heads --qk-layernorm"),
            "--qk-norm-all-heads is there for --normalization RMSNorm only, not for LayerNorm");
}

// Each context rank has two spans of a sequence, and every sequence-parallel rank must get whole rows of each
// span.
TEST(PretrainConfig, SplitsTheSequenceEvenlyOverContextRanks) {
  EXPECT_EQ(complaint(small() + "--context-parallel-size 4 --seq-length 32 --nproc 8"), "");
  EXPECT_EQ(complaint(small() + "--context-parallel-size 2 --sliding-window 8 --nproc 4"), "");
  EXPECT_EQ(
      complaint(small() + "--context-parallel-size 3 --nproc 3 --global-batch-size 2"),
      "--seq-length 32 is not a multiple of 2 * --context-parallel-size 3 = 6; nearest that work: 30, 36");
  EXPECT_EQ(
      complaint(small() +
                "--context-parallel-size 4 --tensor-model-parallel-size 3 --sequence-parallel --nproc 12 "
                "--seq-length 40 --max-position-embeddings 40 --ffn-hidden-size 384"),
      "--seq-length 40 is not a multiple of 2 * --context-parallel-size 4 * --tensor-model-parallel-size 3 "
      "= 24; nearest that work: 24, 48");
}

TEST(PretrainConfig, ChecksTheBatchAndTheSchedule) {
  EXPECT_EQ(complaint(small() + "--global-batch-size 5"),
            "--global-batch-size 5 is not a multiple of --micro-batch-size 2 * data-parallel size 1; nearest "
            "that work: 4, 6");
  EXPECT_EQ(
      complaint(small() + "--global-batch-size 8 --gradient-accumulation-steps 2"),
      "--global-batch-size 8 and --gradient-accumulation-steps 2 contradict each other; give one of them");
  EXPECT_EQ(complaint(small() + "--min-lr 1"), "--min-lr 1 is greater than --lr 0.001");
  EXPECT_EQ(complaint(small() + "--lr 0"), "--lr 0: wanted greater than 0");
  EXPECT_EQ(complaint(small() + "--lr-warmup-iters 60 --lr-decay-iters 50"),
            "the warm-up takes 60 steps, but --lr-decay-iters is 50; shorten --lr-warmup-iters");
  EXPECT_EQ(given(small() + "--lr-warmup-iters 150").train.warmup_iters, 150);  // as long as the run's 100
  EXPECT_EQ(complaint(small() + "--lr-warmup-iters 5 --lr-warmup-fraction .1"),
            "--lr-warmup-iters 5 and --lr-warmup-fraction 0.1 contradict each other; give one of them");
  EXPECT_EQ(complaint(small() + "--fp16 --bf16"),
            "--fp16 and --bf16 contradict each other; give one of them");
  EXPECT_EQ(complaint(small() + "--lr-warmup-samples 8"),
            "--lr-warmup-samples cannot be combined with --train-iters; give --lr-warmup-iters: a run is "
            "counted in "
            "steps or in samples");
  EXPECT_EQ(complaint(small() + "--mock-data --train-data-path a"),
            "--data-path, --train-data-path (with --valid-data-path and --test-data-path) and --mock-data "
            "contradict each other; give one of them");
  EXPECT_EQ(complaint(small() + "--valid-data-path a"),
            "--valid-data-path and --test-data-path need --train-data-path, or --eval-only");
  EXPECT_EQ(complaint(small() + "--loss-scale 128"),
            "--loss-scale 128 needs --fp16 or --bf16: fp32 is trained without one");
  EXPECT_EQ(
      complaint(small() + "--bf16 --initial-loss-scale 1024"),
      "--initial-loss-scale 1024 needs --fp16: other precisions have no dynamic loss scale; leave it out");
  EXPECT_EQ(complaint(small() + "--hysteresis 3"),
            "--hysteresis 3 needs --fp16: other precisions have no dynamic loss scale; leave it out");
  EXPECT_EQ(
      complaint(small() + "--fp16 --loss-scale 8 --loss-scale-window 5"),
      "--loss-scale-window 5 is for a dynamic loss scale, --loss-scale 8 sets a fixed one; give one of them");
  EXPECT_EQ(complaint(small() + "--fp16 --initial-loss-scale 8 --min-loss-scale 16"),
            "--min-loss-scale 16 is greater than --initial-loss-scale 8");
  EXPECT_EQ(complaint(small() + "--recompute-granularity full"),
            "--recompute-granularity full needs --recompute-method uniform or block");
  EXPECT_EQ(complaint(small() + "--save-interval 5"), "--save-interval 5 needs --save DIR");
  EXPECT_NE(complaint(small() + "--at-epoch-ends --global-batch-size 8 --rampup-batch-size 4 4 40")
                .find("--at-epoch-ends: epochs end within batches that grow (--rampup-batch-size)"),
            std::string::npos);
  EXPECT_EQ(complaint(small() + "--split 1,2,3,4"),
            "--split \"1,2,3,4\": wanted up to three weights, such as \"969,30,1\"");
  EXPECT_EQ(complaint(small() + "--tokenizer-type GPT2BPETokenizer --vocab v.json"),
            "--tokenizer-type GPT2BPETokenizer needs --merge-file FILE (merges.txt)");
}

TEST(PretrainConfig, CountsStepsFromSamples) {
  const std::string samples =
      "--num-layers 4 --hidden-size 96 --num-attention-heads 6 --seq-length 32 --micro-batch-size 2 --lr "
      "1e-3 "
      "--train-samples 1001 --global-batch-size 10 ";
  const TrainConfig train = given(samples).train;
  EXPECT_EQ(train.iters, 100);
  EXPECT_EQ(train.decay_samples, 1001);
  EXPECT_EQ(complaint(samples + "--train-iters 7"),
            "--train-iters 7 and --train-samples 1001 contradict each other; give one of them");
}

TEST(PretrainConfig, CountsStepsFromEpochs) {
  const std::string epochs =
      "--num-layers 4 --hidden-size 96 --num-attention-heads 6 --seq-length 32 --micro-batch-size 2 --lr "
      "1e-3 "
      "--num-epochs 3 --lr-warmup-iters 10 ";
  TrainConfig train = given(epochs).train;
  EXPECT_FALSE(train.iters);
  train.set_epoch_steps(40);
  EXPECT_EQ(train.iters, 120);
  EXPECT_EQ(train.decay_iters, 120);  // the decay spans all epochs
  TrainConfig short_one = given(epochs).train;
  EXPECT_THROW(short_one.set_epoch_steps(0), Error);
  TrainConfig all_warmup = given(epochs).train;
  EXPECT_NO_THROW(all_warmup.set_epoch_steps(3));  // 9 steps
  EXPECT_NE(complaint(epochs + "--train-samples 7 --train-iters 7").find("contradict"), std::string::npos);
  EXPECT_NE(complaint("--num-layers 4 --hidden-size 96 --num-attention-heads 6 --seq-length 32 "
                      "--micro-batch-size 2 --lr 1e-3 --train-samples 100 --num-epochs 1")
                .find("--num-epochs 1 and --train-samples 100 contradict each other"),
            std::string::npos);
}

TEST(PretrainConfig, TakesTheCommandLinesLengthBeforeAFiles) {
  const test::TempDir dir;
  write_file(dir / "epochs.yaml", "num-epochs: 3\n");
  write_file(dir / "iters.yaml", "train-iters: 30\n");
  const std::string rest =
      "--num-layers 4 --hidden-size 96 --num-attention-heads 6 --seq-length 32 --micro-batch-size 2 --lr "
      "1e-3 ";
  const TrainConfig steps = given(rest + "--train-iters 7 --config " + (dir / "epochs.yaml")).train;
  EXPECT_EQ(steps.iters, 7);
  EXPECT_FALSE(steps.epochs);
  const TrainConfig epochs = given(rest + "--num-epochs 2 --config " + (dir / "iters.yaml")).train;
  EXPECT_EQ(epochs.epochs, 2);
  EXPECT_FALSE(epochs.iters || epochs.decay_iters);
}

// Values of a --config file for the batch, the length or the precision are set aside if they contradict the
// command line.
TEST(PretrainConfig, SetsAsideAFilesWordThatContradictsTheCommandLine) {
  const test::TempDir dir;
  const std::string rest =
      "--num-layers 4 --hidden-size 96 --num-attention-heads 6 --seq-length 32 --micro-batch-size 2 --lr "
      "1e-3 ";
  std::vector<std::string> log;
  const auto with = [&](const std::string& file, const std::string& line) {
    write_file(dir / "run.yaml", file);
    return given(rest + line + " --config " + (dir / "run.yaml"), &log).train;
  };
  const TrainConfig whole =
      with("gradient-accumulation-steps: 3\ntrain-samples: 80\n", "--global-batch-size 8");
  EXPECT_EQ(whole.global_batch, 8);
  EXPECT_EQ(whole.iters, 10);
  const TrainConfig parts =
      with("global-batch-size: 8\ntrain-samples: 80\n", "--gradient-accumulation-steps 5");
  EXPECT_EQ(parts.global_batch, 10);
  EXPECT_EQ(parts.iters, 8);
  EXPECT_TRUE(with("bf16: true\ntrain-iters: 5\n", "--fp16").fp16);
  const TrainConfig half = with("fp16: true\nhysteresis: 3\ntrain-iters: 5\n", "--bf16");
  EXPECT_TRUE(half.bf16 && !half.fp16);
  // --no-bf16 does not contradict fp16.
  const TrainConfig same = with("fp16: true\ntrain-iters: 5\n", "--no-bf16");
  EXPECT_TRUE(same.fp16);
  const TrainConfig epochs = with("train-samples: 80\nglobal-batch-size: 8\n", "--num-epochs 2");
  EXPECT_EQ(epochs.epochs, 2);
  EXPECT_FALSE(epochs.iters || epochs.samples || epochs.decay_iters || epochs.decay_samples);
  const TrainConfig levels =
      with("global-batch-size: 8\ntrain-samples: 80\n", "--step-batch-size-schedule 0:4,640:6");
  EXPECT_EQ(levels.global_batch, 6);
  EXPECT_EQ(levels.iters, 15);
  const TrainConfig ramp =
      with("step-batch-size-schedule: \"0:4 640:6\"\ntrain-samples: 80\n", "--rampup-batch-size 2 2 16");
  EXPECT_EQ(ramp.batch_schedule, "");
  EXPECT_EQ(ramp.rampup, (std::vector<std::string>{"2", "2", "16"}));
  EXPECT_EQ(ramp.global_batch, 2);
  ASSERT_EQ(log.size(), 8u) << join(log, "\n");
  EXPECT_EQ(log[0], concat("--global-batch-size on the command line comes before "
                           "--gradient-accumulation-steps 3 (",
                           dir / "run.yaml", ":1)"));
  write_file(dir / "run.yaml", "global-batch-size: 5\ntrain-iters: 5\n");
  EXPECT_EQ(complaint(rest + "--config " + (dir / "run.yaml")),
            concat("--global-batch-size 5 is not a multiple of --micro-batch-size 2 * data-parallel size 1; "
                   "nearest that work: 4, 6 (",
                   dir / "run.yaml", ":1 gives --global-batch-size)"));
}

TEST(PretrainConfig, EvaluatesAloneWhateverTheLength) {
  const std::string rest =
      "--num-layers 4 --hidden-size 96 --num-attention-heads 6 --seq-length 32 --micro-batch-size 2 "
      "--eval-only ";
  for (const char* length : {"", "--num-epochs 2", "--train-samples 100 --num-epochs 1"}) {
    const TrainConfig train = given(rest + length).train;
    EXPECT_FALSE(train.epochs) << length;
    EXPECT_TRUE(train.iters) << length;
  }
  EXPECT_EQ(given(rest + "--num-epochs 2").train.iters, 0);
  const PretrainConfig alone = given(
      "--num-layers 4 --hidden-size 96 --num-attention-heads 6 --seq-length 32 --eval-only --valid-data-path "
      "a");
  EXPECT_EQ(alone.train.micro_batch, 1);
  EXPECT_EQ(alone.train.global_batch, 1);
  EXPECT_FALSE(alone.data.reads_texts());
}

TEST(PretrainConfig, IsTheSameFilledByHand) {
  PretrainConfig by_hand;
  by_hand.model.layers = 4;
  by_hand.model.hidden = 96;
  by_hand.model.heads = 6;
  by_hand.model.seq_length = 32;
  by_hand.train.micro_batch = 2;
  by_hand.train.lr = 1e-3;
  by_hand.train.iters = 100;
  by_hand.finish();
  Problems problems;
  by_hand.validate(problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_TRUE(differences(by_hand, given(small())).empty());
}

TEST(PretrainConfig, SaysInWhatModelsDiffer) {
  const auto list = differences(given(small()).model, given(small() + "--hidden-size 192 --lr 2e-3").model);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].name, "hidden-size");
  EXPECT_EQ(list[0].theirs, "96");
  EXPECT_EQ(list[0].ours, "192");
  EXPECT_EQ(list[1].name, "ffn-hidden-size");
  EXPECT_EQ(list[2].name, "kv-channels");
}

TEST(PretrainConfig, TakesTheModelFromACheckpoint) {
  const Json args = to_json(given(small() + "--swiglu --disable-bias-linear"));
  PretrainConfig config;
  Options options("pretrain", "Train.");
  config.add_to(options);
  ASSERT_FALSE(options.read(words("--micro-batch-size 4 --lr 2e-3 --train-iters 5 --seq-length 16")));
  options.adopt(args, "iter_0000100", {"Model"});
  options.check();
  EXPECT_EQ(config.model.hidden, 96);
  EXPECT_EQ(config.model.ffn_hidden, 256);
  EXPECT_EQ(config.model.seq_length, 16);
  EXPECT_FALSE(config.model.has_qkv_bias());
  EXPECT_EQ(config.train.micro_batch, 4);
  EXPECT_EQ(options.source("swiglu"), "checkpoint iter_0000100");
}

TEST(PretrainConfig,
     SurvivesExtremeNumbers) {  // under the sanitizers, undefined arithmetic fails the test
  PretrainConfig any;
  std::vector<std::string> numbers;
  for (const Field& field : fields_of(any))
    if (!is_flag(field) && to_json({field})[json_key(field.name)].is_number()) numbers.push_back(field.name);
  ASSERT_GT(numbers.size(), 25u);
  const std::vector<std::string> extremes = {"0",       "1",          "3",           "1024",
                                             "1048576", "2147483647", "-2147483648", "9223372036854775807",
                                             "1e308",   "1e-320"};
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::string line = kSmall;
    for (size_t i = random() % 5; i-- > 0;)
      line += " --" + numbers[random() % numbers.size()] + ' ' + extremes[random() % extremes.size()];
    complaint(line);  // complaint() fails the test if the Error is not of kind kUsage
  }
}

}  // namespace
}  // namespace megalith
