// Runs Megatron-LM's own example scripts and the CodeParrot tutorial's training command. Only sizes are
// changed.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/parallel/processes/gloo_comm.h"
#include "tests/support/files.h"
#include "tests/support/json_log.h"
#include "tests/support/once/pattern.h"
#include "tests/support/processes.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// A folder in which scripts run, with a corpus, the fixtures' GPT-2 tokenizer, and the corpus's dataset.
class PretrainScripts : public testing::Test {
 protected:
  PretrainScripts() {
    for (const char* name : {"vocab.json", "merges.txt"})
      fs::copy_file(test_data(concat("apps/fixtures/wiki/", name)), dir_ / name);
    std::string corpus;
    for (int i = 0; i < 120; ++i)
      corpus += concat("{\"content\": \"def number_", i, "():\\n    return ", i, " + ", i * 7 % 13,
                       "  # the same again and again\\n\"}\n");
    write_file(dir_ / "codeparrot_data.json", corpus);
    const CommandResult made = run(
        "megalith-preprocess --input codeparrot_data.json --output-prefix codeparrot --vocab vocab.json "
        "--dataset-impl mmap --tokenizer-type GPT2BPETokenizer --merge-file merges.txt --json-keys content "
        "--workers 2 --chunk-size 25 --append-eod");
    EXPECT_EQ(made.code, 0) << made.all();
  }
  CommandResult run(const std::string& script) const {
    write_file(dir_ / "script.sh", script);
    return run_command(concat("cd ", dir_.path().string(), " && export OMP_NUM_THREADS=1 PATH=",
                              fs::path(app("pretrain")).parent_path().string(), ":$PATH && bash script.sh"));
  }
  /// From a --log-json file: the losses, and which steps were skipped.
  struct Curve {
    std::vector<double> losses;
    std::vector<int64_t> skipped;
  };
  Curve curve(const std::string& name) const {
    Curve curve;
    for (const Json& step : log_lines(dir_ / name, "train")) {
      curve.losses.push_back(step["loss"].is_number() ? step["loss"].as_double() : NAN);
      if (step["skipped"].as_bool()) curve.skipped.push_back(step["iteration"].as_int());
    }
    return curve;
  }
  TempDir dir_;
};

// The tutorial's variables and training command with our executable. Sizes and numbers of steps are smaller,
// and --log-json is added so that the test can read the losses.
constexpr const char* kCodeParrot = R"(
GPUS_PER_NODE=8
MASTER_ADDR=localhost
MASTER_PORT=PORT
NNODES=1
NODE_RANK=0
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
DISTRIBUTED_ARGS="--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES --node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT"
CHECKPOINT_PATH=experiments/codeparrot-small
VOCAB_FILE=vocab.json
MERGE_FILE=merges.txt
DATA_PATH=codeparrot_content_document
GPT_ARGS="--num-layers 2
--hidden-size 32
--num-attention-heads 4
--seq-length 32
--max-position-embeddings 32
--micro-batch-size 1
--global-batch-size 16
--lr 0.005
--train-iters 30
--lr-decay-iters 30
--lr-decay-style cosine
--lr-warmup-iters 2
--weight-decay .1
--adam-beta2 .999
--fp16
--log-interval 10
--save-interval 20
--eval-interval 20
--eval-iters 1
"
TENSORBOARD_ARGS="--tensorboard-dir experiments/tensorboard"
megalith-pretrain DISTRIBUTED \
        --tensor-model-parallel-size 1 \
        --pipeline-model-parallel-size 1 \
        $GPT_ARGS \
        --vocab-file $VOCAB_FILE \
        --merge-file $MERGE_FILE \
        --save $CHECKPOINT_PATH \
        --load $CHECKPOINT_PATH \
        --data-path $DATA_PATH \
        $TENSORBOARD_ARGS )";

std::string code_parrot(const std::string& ranks, const std::string& more) {
  const std::string text = test::replaced(std::string(kCodeParrot), "DISTRIBUTED \\\\", ranks + " \\");
  return test::replaced(text, "=PORT", concat("=", free_port())) + more + "\n";
}

// Trains in fp16 on 8 ranks. With Megatron's initial loss scale the first steps overflow on all ranks alike.
// After that, the losses must equal those of one rank up to fp16's rounding (2^-11 if a sum of activations
// rounds to the neighbouring value).
TEST_F(PretrainScripts, OfCodeParrotTrainOn8RanksAsOnOne) {
  constexpr double kFp16Rounding = 2e-3;
  // The ranks are processes, as with the tutorial's launcher. In a build that cannot connect processes, they
  // are threads.
  const std::string ranks = has_process_comm() ? "$$DISTRIBUTED_ARGS" : "--nproc_per_node $$GPUS_PER_NODE";
  const CommandResult eight = run(code_parrot(ranks, "--ckpt-format torch --log-json eight.jsonl"));
  ASSERT_EQ(eight.code, 0) << eight.all();
  EXPECT_NE(eight.out.find("data-parallel size: 8"), std::string::npos) << eight.out;
  EXPECT_TRUE(test::Pattern("\\| loss scale: [0-9]+\\.0 \\| grad norm").is_in(eight.out)) << eight.out;
  EXPECT_TRUE(fs::exists(dir_ / "experiments/codeparrot-small/iter_0000020/mp_rank_00/model_optim_rng.pt"));
  // Megatron's --initial-loss-scale; one overflow does not lower it yet (--hysteresis 2).
  EXPECT_EQ(log_lines(dir_ / "eight.jsonl", "train").at(0)["loss_scale"].as_double(), 0x1p32);
  EXPECT_FALSE(fs::is_empty(dir_ / "experiments/tensorboard"));
  const CommandResult one =
      run("mkdir one && cd one && ln -s ../vocab.json ../merges.txt ../codeparrot_* . \n" +
          code_parrot("", "--log-json ../one.jsonl"));
  ASSERT_EQ(one.code, 0) << one.all();
  const Curve many = curve("eight.jsonl"), single = curve("one.jsonl");
  ASSERT_EQ(many.losses.size(), 30U);
  EXPECT_EQ(many.skipped, single.skipped);
  EXPECT_GE(many.skipped.size(), 5U);  // the initial scale, 2^32, is far too large
  EXPECT_LT(many.skipped.size(), 28U);
  for (size_t i = 0; i < many.losses.size(); ++i)
    EXPECT_NEAR(many.losses[i] / single.losses[i], 1, kFp16Rounding) << i;

  // Converts the model as the tutorial does, then generates text from the result.
  const std::string folder = "experiments/codeparrot-small/iter_0000030/mp_rank_00";
  const CommandResult converted = run("megalith-convert " + folder + "/model_optim_rng.pt");
  ASSERT_EQ(converted.code, 0) << converted.all();
  EXPECT_EQ(read_file(dir_ / (folder + "/vocab.json")), read_file(dir_ / "vocab.json"));
  const CommandResult text =
      run("megalith-generate --model " + folder + " --prompt 'def hello_world():' --max-new-tokens 5");
  EXPECT_EQ(text.code, 0) << text.all();
}

// Runs examples/gpt3/train_gpt3_175b_distributed.sh with smaller sizes, a growing batch and --train-iters.
TEST_F(PretrainScripts, OfGpt3Start) {
  const CommandResult result = run(R"(
megalith-pretrain --nproc 8 \
    --num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --max-position-embeddings 16 \
    --attention-backend auto \
    --micro-batch-size 1 --global-batch-size 16 --rampup-batch-size 4 4 24 --train-iters 12 --weight-decay 0.1 \
    --adam-beta1 0.9 --adam-beta2 0.95 --init-method-std 0.006 --clip-grad 1.0 --fp16 --lr 6.0e-5 \
    --lr-decay-style cosine --min-lr 6.0e-6 --lr-warmup-fraction .001 --lr-decay-iters 10 \
    --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 \
    --data-path codeparrot_content_document --vocab-file vocab.json --merge-file merges.txt --split 949,50,1 \
    --log-interval 1 --save-interval 10000 --eval-interval 1000 --save s --load s --eval-iters 1 \
    --tensorboard-dir t)");
  ASSERT_EQ(result.code, 0) << result.all();
  for (const char* batch : {"4", "8", "16"})
    EXPECT_TRUE(test::Pattern(concat("global batch size: +", batch, " \\|")).is_in(result.out)) << batch;
}

// Runs examples/llama/train_llama3_8b_h100_fp8.sh with smaller sizes. One error must name everything in it
// that is not supported; without that, it must train on mock data.
TEST_F(PretrainScripts, OfLlama3NameAllThatIsNotHereAndStartWithoutIt) {
  const std::string rest = R"(
megalith-pretrain --nproc 2 --use-mcore-models --num-layers 2 --hidden-size 64 --ffn-hidden-size 128 \
    --num-attention-heads 4 --group-query-attention --num-query-groups 2 --kv-channels 16 --seq-length 32 \
    --max-position-embeddings 32 --position-embedding-type rope --rotary-base 1000000 --rotary-percent 1.0 \
    --attention-dropout 0.0 --hidden-dropout 0.0 --swiglu --init-method-std 0.0134 --attention-backend fused \
    --untie-embeddings-and-output-weights --disable-bias-linear --micro-batch-size 1 --global-batch-size 4 \
    --train-samples 20 --lr-decay-samples 18 --lr-warmup-samples 4 --lr 0.00015 --min-lr 0.00001 \
    --lr-decay-style cosine --clip-grad 1.0 --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.95 --bf16 \
    --cross-entropy-loss-fusion --manual-gc --empty-unused-memory-level 1 --exit-duration-in-mins 235 \
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
    --tensor-model-parallel-size 1 --context-parallel-size 1 --sequence-parallel \
    --mock-data --tokenizer-type NullTokenizer --vocab-size 1000 --data-cache-path cache --tiktoken-pattern v2 \
    --split \'99,1,0\' --no-create-attention-mask-in-dataloader --no-mmap-bin-files --num-workers 1 \
    --log-interval 1 --eval-iters 1 --eval-interval 100 --save-interval 1000 --log-throughput --profile \
    --profile-step-start 4 --profile-step-end 6 --ckpt-format torch_dist --distributed-timeout-minutes 60 \
    --save s --load s --tensorboard-dir t )";
  const std::vector<std::string> lacking = {"--apply-layernorm-1p",        "--decoupled-lr 5.0e-4",
                                            "--decoupled-min-lr 4.5e-5",   "--grad-reduce-in-bf16",
                                            "--fp8-format hybrid",         "--calculate-per-token-loss",
                                            "--fp8-amax-history-len 1024", "--fp8-param-gather"};
  const CommandResult refused = run(rest + join(lacking, " "));
  EXPECT_EQ(refused.code, 64) << refused.all();
  for (const std::string& option : lacking)
    EXPECT_NE(refused.err.find(option.substr(0, option.find(' '))), std::string::npos)
        << option << refused.err;
  const CommandResult result = run(rest);
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_NE(result.out.find(" iteration        5/       5 | consumed samples:           20 | "),
            std::string::npos)
      << result.out;
}

// Runs examples/mixtral/train_mixtral_8x7b_distributed.sh with smaller sizes. One error must name each option
// of its experts with a remedy; without them, it must train the dense model.
TEST_F(PretrainScripts, OfMixtralNameTheExpertsAndStartWithoutThem) {
  const std::string rest = concat(R"(
megalith-pretrain --nproc 2 --use-mcore-models --disable-bias-linear --seq-length 32 --max-position-embeddings 64 \
    --num-layers 2 --hidden-size 32 --ffn-hidden-size 64 --num-attention-heads 2 --init-method-std 0.01 \
    --attention-dropout 0.0 --hidden-dropout 0.0 --normalization RMSNorm --position-embedding-type rope --swiglu \
    --untie-embeddings-and-output-weights --group-query-attention --num-query-groups 2 --no-masked-softmax-fusion \
    --rotary-base 1000000 --overlap-param-gather --overlap-grad-reduce --mock-data --split 99990,8,2 \
    --micro-batch-size 1 --global-batch-size 4 --lr 1e-4 --train-iters 7 --min-lr 1.0e-5 --weight-decay 0.1 \
    --clip-grad 1.0 --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --use-distributed-optimizer \
    --sequence-parallel --eval-iters 1 --no-load-optim --no-load-rng --log-interval 1 \
    --tokenizer-type Llama2Tokenizer --tokenizer-model )",
                                  test_data("text/goldens/pieces.model"), ' ');
  const std::vector<std::string> lacking = {
      "--no-position-embedding",       "--num-experts 2",
      "--moe-router-topk 2",           "--moe-router-load-balancing-type aux_loss",
      "--moe-aux-loss-coeff 1e-2",     "--moe-token-dispatcher-type alltoall",
      "--expert-model-parallel-size 2"};
  const CommandResult refused = run(rest + join(lacking, " "));
  EXPECT_EQ(refused.code, 64) << refused.all();
  for (const std::string& option : lacking)
    EXPECT_TRUE(
        test::Pattern(option.substr(0, option.find(' ')) + "( 2)? is not supported[^;]*; [^\n]*leave it")
            .is_in(refused.err))
        << option << refused.err;
  const CommandResult result = run(rest);
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_TRUE(test::Pattern("iteration +7/ +7 .*lm loss: [0-9]").is_in(result.out)) << result.out;
}

}  // namespace
}  // namespace megalith::test
