#include "libcore/plan/launch/launch.h"

#include <random>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/dialects/megatron/fates.h"
#include "libcore/json/json.h"
#include "libcore/plan/launch/launch_options.h"
#include "libcore/plan/request/plan_request.h"
#include "libcore/plan/shape/model_options.h"
#include "tests/plan/problems.h"

namespace megalith {
namespace {

using test::gpt_22b;
using test::mixtral;

bool has(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

TEST(Launch, NamesTheLayoutInMegatronsOptions) {
  PlanProblem p = gpt_22b(64);
  Candidate c{.tensor = 8, .pipeline = 4, .chunks = 3, .sequence = true, .sharding = Sharding::kOptimizer};
  ASSERT_FALSE(complete(p, c));
  const std::string options = launch_options(p, c);
  EXPECT_TRUE(has(options, "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 4")) << options;
  EXPECT_TRUE(has(options, "--num-layers-per-virtual-pipeline-stage 4")) << options;  // 48 / 4 / 3
  EXPECT_TRUE(has(options, "--sequence-parallel")) << options;
  EXPECT_TRUE(has(options, "--use-distributed-optimizer")) << options;
  c.recompute = Recomputed::kFull;
  c.recompute_layers = 6;
  EXPECT_TRUE(has(launch_options(p, c), "--recompute-method block --recompute-num-layers 2")) << "each chunk";
}

TEST(Launch, NamesTheExpertsOfAMixtureAndTheirRanks) {
  PlanProblem p = mixtral(64);
  Candidate c{.tensor = 2, .expert = 8, .expert_tensor = 1, .sequence = true};
  ASSERT_FALSE(complete(p, c));
  // Without this option Megatron would use the tensor size for an expert's matrices.
  EXPECT_TRUE(has(launch_options(p, c), "--expert-model-parallel-size 8 --expert-tensor-parallel-size 1"))
      << launch_options(p, c);
  EXPECT_TRUE(has(model_options(p.model),
                  "--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 14336 "
                  "--moe-token-dispatcher-type alltoall --moe-grouped-gemm"))
      << model_options(p.model);
  p.model.layer_freq = "([0]*3+[1]*29)";
  p.model.shared_ffn = 4096;
  p.model.forced_balance = true;
  EXPECT_TRUE(has(launch_line(p, c, Launcher::kSrun, false), "--moe-layer-freq \"([0]*3+[1]*29)\""))
      << "within the single quotes of bash -c";
  EXPECT_TRUE(has(model_options(p.model), "--moe-shared-expert-intermediate-size 4096"));
  EXPECT_TRUE(has(model_options(p.model), "--moe-router-force-load-balancing"));
  p.software.overlap_exchange = true;
  EXPECT_TRUE(has(launch_options(p, c), "--overlap-moe-expert-parallel-comm"));
  p.software.schedule = Schedule::kDualPipe;  // Megatron-LM has no option for its overlap
  EXPECT_FALSE(has(launch_options(p, c), "--overlap-moe-expert-parallel-comm"));
  p.model.experts.reset();
  c.expert = 1;
  EXPECT_FALSE(has(launch_options(p, c), "expert"));
}

// transformer_config.py refuses flex without DeepEP, an expert bias with softmax scores, and a softmax over a
// single score.
TEST(Launch, NamesWhatMegatronWantsBesideAnOptionOfExperts) {
  ModelShape m = mixtral(64).model;
  const std::string plain = model_options(m);
  for (const char* option :
       {"deepep", "score-function", "pre-softmax", "balancing", "router-num-groups", "shared"})
    EXPECT_FALSE(has(plain, option)) << plain;
  m.dispatcher = Dispatcher::kFlex;
  EXPECT_TRUE(
      has(model_options(m), "--moe-token-dispatcher-type flex --moe-grouped-gemm --moe-enable-deepep"));
  m.expert_bias = true;
  EXPECT_TRUE(has(model_options(m), "--moe-router-enable-expert-bias --moe-router-score-function sigmoid"));
  m.score_function = "sqrtsoftplus";
  EXPECT_TRUE(
      has(model_options(m), "--moe-router-enable-expert-bias --moe-router-score-function sqrtsoftplus"));
  m = mixtral(64).model;
  m.router_topk = 1;
  EXPECT_TRUE(has(model_options(m), "--moe-router-pre-softmax"));
  m.balance = {"aux_loss", "seq_aux_loss"};
  m.loss_coeffs = {"1e-2", "1e-3"};
  m.router_groups = 4;
  m.group_topk = 2;
  m.shared_ffn = 64;
  m.shared_overlap = true;
  EXPECT_TRUE(
      has(model_options(m),
          "--moe-shared-expert-overlap --moe-router-pre-softmax --moe-router-load-balancing-type aux_loss "
          "seq_aux_loss --moe-aux-loss-coeff 1e-2 1e-3 --moe-router-num-groups 4 --moe-router-group-topk 2"))
      << model_options(m);
}

// The quotes that Megatron's scripts put inside the shell's quotes are removed before the pattern is quoted
// again.
TEST(Launch, QuotesALayerPatternOnce) {
  PlanProblem p = mixtral(64);
  p.model.layer_freq = "'([0] * 3 + [1]*29)'";
  p.model.finish();
  Candidate c{.expert = 8};
  ASSERT_FALSE(complete(p, c));
  for (Launcher launcher : {Launcher::kTorchrun, Launcher::kSrun, Launcher::kMpirun})
    EXPECT_TRUE(has(launch_line(p, c, launcher, false), "--moe-layer-freq \"([0]*3+[1]*29)\" "))
        << launch_line(p, c, launcher, false);
}

TEST(Launch, NamesLatentAttention) {
  PlanProblem p = mixtral(64);
  p.model.latent_attention = true;
  p.model.query_rank = 1536;
  p.model.predicted = 1;
  p.model.finish();
  EXPECT_TRUE(has(model_options(p.model),
                  "--multi-latent-attention --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 "
                  "--v-head-dim 128 --q-lora-rank 1536"))
      << model_options(p.model);
  EXPECT_TRUE(has(model_options(p.model), "--mtp-num-layers 1"));
}

TEST(Launch, NamesUnevenLayouts) {
  PlanProblem p = gpt_22b(64);
  Candidate c{.tensor = 8, .pipeline = 4, .first_layers = 11, .last_layers = 9};
  ASSERT_FALSE(complete(p, c));
  EXPECT_TRUE(has(launch_options(p, c),
                  "--decoder-first-pipeline-num-layers 11 --decoder-last-pipeline-num-layers 9"));
  p.stage_layers = {12, 14, 13, 9};
  c.first_layers = c.last_layers = 0;
  EXPECT_TRUE(has(launch_options(p, c), "--pipeline-model-parallel-layout \"Et*12|t*14|t*13|t*9L\""))
      << "within the single quotes of bash -c: " << launch_options(p, c);
}

TEST(Launch, StartsOneProcessADevice) {
  const PlanProblem p = gpt_22b(64);
  Candidate c{.tensor = 8};
  ASSERT_FALSE(complete(p, c));
  EXPECT_TRUE(has(launch_line(p, c, Launcher::kTorchrun, false), "torchrun --nnodes 8 --nproc_per_node 8"));
  EXPECT_TRUE(has(launch_line(p, c, Launcher::kSrun, true), "--ntasks-per-node 8"));
  EXPECT_TRUE(has(launch_line(p, c, Launcher::kMpirun, false), "mpirun -np 64 --map-by ppr:8:node"));
  EXPECT_TRUE(has(launch_line(p, c, Launcher::kMpirun, true), "megalith-pretrain"));
}

TEST(Launch, WritesJobsThatParsersRead) {
  const PlanProblem p = gpt_22b(64);
  Candidate c{.tensor = 8};
  ASSERT_FALSE(complete(p, c));
  const Json k8s = Json::parse(job_text(p, c, JobKind::kKubernetes, false), "k8s");
  EXPECT_EQ(k8s["kind"].as_string(), "PyTorchJob");
  EXPECT_EQ(k8s["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"].as_int(), 7);
  const auto limits = [&](const char* device) {
    PlanProblem other = p;
    other.machine.device = find_accelerator(device);
    const Json job = Json::parse(job_text(other, c, JobKind::kKubernetes, false), device);
    const Json& pod = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"];
    return pod["containers"].as_array()[0]["resources"]["limits"].dump();
  };
  EXPECT_EQ(limits("h100"), R"({"nvidia.com/gpu": 8})");
  EXPECT_EQ(limits("mi300x"), R"({"amd.com/gpu": 8})");
  EXPECT_EQ(limits("910b"), R"({"huawei.com/Ascend910": 8})");
  const Json dlc = Json::parse(job_text(p, c, JobKind::kDlc, false), "dlc");
  EXPECT_EQ(dlc["JobSpecs"].as_array()[0]["PodCount"].as_int(), 8);
  const std::string slurm = job_text(p, c, JobKind::kSlurm, false);
  EXPECT_TRUE(slurm.starts_with("#!/bin/bash\n#SBATCH --nodes=8\n"));
  // Our program saves at Slurm's signal; Megatron, which does not expect the signal, would end.
  EXPECT_TRUE(has(job_text(p, c, JobKind::kSlurm, true), "\n#SBATCH --signal=USR1@300\n"));
  EXPECT_FALSE(has(slurm, "--signal"));
}

// A job is whole but for what only its user knows, and says what that is.
TEST(Launch, MarksWhatAJobLacks) {
  PlanProblem p = gpt_22b(64);
  Candidate c{.tensor = 8, .pipeline = 8};
  ASSERT_FALSE(complete(p, c));
  using Names = std::vector<std::string>;
  EXPECT_EQ(
      job_gaps(job_text(p, c, JobKind::kSlurm, false)),
      (Names{"--time", "--data-path", "--train-iters", "--tokenizer-type", "--tokenizer-model", "--lr"}));
  EXPECT_EQ(job_gaps(job_text(p, c, JobKind::kSlurm, true)),
            (Names{"--time", "--data-path", "--train-iters"}));
  p.run_words = p.megatron_words =
      " --data-path /data/x --train-iters 10 --tokenizer-type GPT2BPETokenizer --vocab-file v --lr 1e-4";
  for (const bool ours : {false, true}) {
    EXPECT_EQ(job_gaps(job_text(p, c, JobKind::kSlurm, ours)), Names{"--time"});
    EXPECT_EQ(job_gaps(job_text(p, c, JobKind::kKubernetes, ours)),
              (Names{"image", "claimName", "nvidia.com/gpu.product"}));
    EXPECT_EQ(job_gaps(job_text(p, c, JobKind::kDlc, ours)),
              (Names{"Image", "GPUType", "SharedMemory", "DataSourceId"}));
  }
  for (const Launcher launcher : {Launcher::kTorchrun, Launcher::kSrun, Launcher::kMpirun})
    EXPECT_EQ(job_gaps(launch_line(p, c, launcher, false)), Names{});
  p.megatron_words = " --mock-data --train-iters 10 --tokenizer-type NullTokenizer --lr 1e-4";
  EXPECT_EQ(job_gaps(job_text(p, c, JobKind::kSlurm, false)), Names{"--time"});
}

// O1: parameters are gathered during the forward pass only with a distributed optimizer and overlapped
// gradients.
TEST(Rules, O1OverlappedGathersNeedADistributedOptimizer) {
  PlanProblem p = gpt_22b(64);
  Candidate c{.tensor = 8, .sharding = Sharding::kOptimizer};
  ASSERT_FALSE(complete(p, c));
  EXPECT_TRUE(has(launch_options(p, c), "--overlap-grad-reduce --overlap-param-gather"));
  c.sharding = Sharding::kNone;
  EXPECT_FALSE(has(launch_options(p, c), "--overlap-param-gather"));
}

// As in the time model: tensor ranks of one data rank exchange the gradients of experts that they all hold,
// and this exchange overlaps other work.
TEST(Launch, OverlapsTheExchangeOfExpertsOfOneDataRank) {
  const PlanProblem p = mixtral(8);
  Candidate c{.tensor = 8, .expert = 2, .sequence = true, .sharding = Sharding::kOptimizer};
  ASSERT_FALSE(complete(p, c));
  EXPECT_TRUE(has(launch_options(p, c), "--overlap-grad-reduce --overlap-param-gather"));
  c.expert = 8;
  EXPECT_FALSE(has(launch_options(p, c), "--overlap-grad-reduce"));
}

// O2: FSDP replaces the distributed optimizer.
TEST(Rules, O2FsdpExcludesTheDistributedOptimizer) {
  const PlanProblem p = gpt_22b(64);
  for (Sharding sharding : {Sharding::kGradients, Sharding::kParameters}) {
    Candidate c{.tensor = 8, .sharding = sharding};
    ASSERT_FALSE(complete(p, c));
    EXPECT_TRUE(has(launch_options(p, c), "--use-megatron-fsdp"));
    EXPECT_FALSE(has(launch_options(p, c), "--use-distributed-optimizer"));
  }
}

// megatron/training/arguments.py: "Megatron FSDP only supports fsdp_dtensor checkpoint format".
TEST(Launch, GivesFsdpItsCheckpoints) {
  const PlanProblem p = gpt_22b(64);
  Candidate c{.tensor = 8, .sharding = Sharding::kParameters};
  ASSERT_FALSE(complete(p, c));
  EXPECT_TRUE(has(launch_options(p, c), " --ckpt-format fsdp_dtensor"));
  EXPECT_FALSE(has(launch_options(p, c, true), "fsdp"));
  c.sharding = Sharding::kOptimizer;
  EXPECT_FALSE(has(launch_options(p, c), "fsdp"));
}

TEST(Launch, NamesTheEightBitsAndTheAttentionThatWerePriced) {
  PlanProblem p = gpt_22b(64);
  Candidate c{.tensor = 8};
  ASSERT_FALSE(complete(p, c));
  EXPECT_FALSE(has(launch_options(p, c), "--attention-backend"));
  p.precision = Precision::kFp8;
  EXPECT_TRUE(has(launch_options(p, c), " --bf16 --fp8-format hybrid"));
  EXPECT_FALSE(has(launch_options(p, c), "--fp8-recipe"));
  p.fp8_format = "e4m3";
  p.fp8_recipe = "blockwise";
  EXPECT_TRUE(has(launch_options(p, c), " --bf16 --fp8-format e4m3 --fp8-recipe blockwise"));
  p.software.attention = AttentionKernel::kTorch;
  EXPECT_TRUE(has(launch_options(p, c), " --attention-backend unfused --no-masked-softmax-fusion"));
  EXPECT_FALSE(has(launch_options(p, c, true), "--attention-backend")) << "our trainer has one kind";
  p.software.attention = AttentionKernel::kFusedSoftmax;
  EXPECT_TRUE(has(launch_options(p, c), " --attention-backend unfused"));
  EXPECT_FALSE(has(launch_options(p, c), "softmax-fusion"));
}

// 30 layers, the embedding and the head count as 32: 4 for each of 4 chunks on 2 stages (rule L2).
TEST(Launch, CountsTheEndsOfAnInterleavedPipelineAsItWasPlanned) {
  PlanProblem p = gpt_22b(64);
  p.model.layers = 30;
  Candidate c{.tensor = 8,
              .pipeline = 2,
              .chunks = 4,
              .first_layers = 15,
              .last_layers = 15,
              .counts_embedding = true,
              .counts_head = true};
  ASSERT_FALSE(complete(p, c)) << complete(p, c)->reason;
  EXPECT_TRUE(has(launch_options(p, c),
                  "--num-layers-per-virtual-pipeline-stage 4 --account-for-embedding-in-pipeline-split "
                  "--account-for-loss-in-pipeline-split"))
      << launch_options(p, c);
  p.model.layers = 31;  // only the embedding counts as a layer
  c.last_layers = 0;
  c.counts_head = false;
  ASSERT_FALSE(complete(p, c)) << complete(p, c)->reason;
  EXPECT_TRUE(has(launch_options(p, c),
                  "--num-layers-per-virtual-pipeline-stage 4 --account-for-embedding-in-pipeline-split "))
      << launch_options(p, c);
  EXPECT_FALSE(has(launch_options(p, c), "--account-for-loss-in-pipeline-split"));
}

/// The plan of a command that consists of the printed options of `c`. These must fix everything that the
/// search would choose.
Plan planned_by_options(const PlanProblem& p, const Candidate& c) {
  PlanCommand command;
  Options options{"autoplan", ""};
  command.add_to(options);
  options.fates([] { return fates_in(Program::kAutoplan); });  // Megatron's options are printed too
  options.read(split(concat("--gpu a100-80 --world-size ", p.machine.world, " --local-world-size 8 ",
                            model_options(p.model, false), ' ', launch_options(p, c)),
                     ' '));
  command.check(options);
  PlanRequest request = plan_request(command);
  if (c.chunks == 1) request.fixed.chunks = 1;
  request.fixed.context = c.context;
  request.fixed.sequence = c.sequence;
  request.fixed.sharding = c.sharding;
  const SearchResult found = search_plans(request.problem, request.fixed, 20);
  EXPECT_EQ(found.plans.size(), 1u) << launch_options(p, c);
  return found.plans.empty() ? Plan{} : found.plans.front();
}

struct Cut {
  int layers;
  bool embedding, head;  // whether each counts as a layer (L2)
};

// Megatron counts recomputed layers per chunk (R1). The plan's price must be that of the run which the
// printed options start.
TEST(Launch, PrintsOptionsThatArePricedAsThePlanIs) {
  constexpr Cut kCuts[] = {{24, false, false}, {48, false, false}, {60, false, false},
                           {31, true, false},  {31, false, true},  {30, true, true}};
  std::mt19937 random(23);
  const auto below = [&](size_t count) { return static_cast<int>(random() % count); };
  PlanProblem p = gpt_22b(64);
  p.software.overlap_tensor = true;
  p.machine.device.memory = 1e15;  // every plan should fit
  p.max_global_batch = 0;
  p.global_batch = 64;
  for (int tried = 0; tried < 100;) {
    const Cut& cut = kCuts[below(std::size(kCuts))];
    p.model = test::gpt(cut.layers, 2048, 16, 1024, 51200);
    Candidate c{.tensor = 2 << below(2), .pipeline = 2 << below(2), .chunks = 1 + below(4)};
    c.counts_embedding = cut.embedding;
    c.counts_head = cut.head;
    const int counted = (cut.layers + cut.embedding + cut.head) / c.pipeline;
    if (cut.embedding) c.first_layers = counted - 1;
    if (cut.head) c.last_layers = counted - 1;
    c.sharding = below(2) == 0 ? Sharding::kNone : Sharding::kOptimizer;
    c.recompute = Recomputed::kFull;
    if (complete(p, c) || (c.chunks == 1 && cut.layers % c.pipeline != 0)) continue;
    c.recompute_layers = below(static_cast<size_t>(most_stage_layers(p, c)));
    ++tried;
    const Plan printed = planned_by_options(p, c), priced = make_plan(p, c);
    EXPECT_EQ(printed.time.total(), priced.time.total()) << launch_options(p, c);
    EXPECT_EQ(printed.memory.estimate.needed(), priced.memory.estimate.needed()) << launch_options(p, c);
  }
}

// X2: before Blackwell, collectives during products need a single connection; FSDP needs several.
TEST(Rules, X2ConnectionsOfADeviceAreSetWhereTensorRanksOverlap) {
  PlanProblem p = gpt_22b(64);
  Candidate c{.tensor = 8};
  ASSERT_FALSE(complete(p, c));
  const std::string setting = "CUDA_DEVICE_MAX_CONNECTIONS=1 ";
  for (Launcher launcher : {Launcher::kTorchrun, Launcher::kSrun, Launcher::kMpirun})
    EXPECT_TRUE(has(launch_line(p, c, launcher, false), setting));
  c.sharding = Sharding::kParameters;
  EXPECT_FALSE(has(launch_line(p, c, Launcher::kTorchrun, false), setting));
  p.max_global_batch = 64;
  Candidate context{.context = 2};
  ASSERT_FALSE(complete(p, context));
  EXPECT_TRUE(has(launch_line(p, context, Launcher::kTorchrun, false), setting));
  Candidate alone{.data = 2};
  ASSERT_FALSE(complete(p, alone));
  EXPECT_FALSE(has(launch_line(p, alone, Launcher::kTorchrun, false), setting));
  c.sharding = Sharding::kNone;
  p.machine.device = find_accelerator("b200");
  EXPECT_FALSE(has(launch_line(p, c, Launcher::kTorchrun, false), setting));
}

}  // namespace
}  // namespace megalith
