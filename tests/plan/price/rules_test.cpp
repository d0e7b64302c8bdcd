// For each rule of docs/planner.md, by its id: a candidate that breaks the rule, and a similar one that does
// not.
#include "libcore/plan/price/rules.h"

#include <gtest/gtest.h>

#include "tests/plan/problems.h"

namespace megalith {
namespace {

using test::gpt_22b;
using test::mixtral;

std::string rule(const PlanProblem& p, Candidate c) {
  const auto rejection = complete(p, c);
  return rejection ? rejection->rule : "";
}
std::string reason(const PlanProblem& p, Candidate c) {
  const auto rejection = complete(p, c);
  return rejection ? rejection->reason : "";
}

TEST(Rules, W1WorldIsAMultipleOfTensorPipelineContext) {
  EXPECT_EQ(rule(gpt_22b(64), {.tensor = 3}), "W1");
  EXPECT_EQ(rule(gpt_22b(64), {.tensor = 4, .pipeline = 4}), "");
  EXPECT_NE(reason(gpt_22b(64), {.tensor = 3}).find("nearest that work: 63, 66"), std::string::npos)
      << reason(gpt_22b(64), {.tensor = 3});
}

TEST(Rules, B1GlobalBatchIsAMultipleOfMicroBatchTimesData) {
  EXPECT_EQ(rule(gpt_22b(64), {.tensor = 1}), "B1");  // data 64 > global batch 16
  PlanProblem p = gpt_22b(64);
  p.max_global_batch = 0;
  p.global_batch = 24;
  EXPECT_EQ(rule(p, {.tensor = 4}), "B1");  // data 16
  EXPECT_EQ(rule(p, {.tensor = 8}), "");    // data 8
}

TEST(Rules, H1HiddenIsAMultipleOfTheHeads) {
  PlanProblem p = gpt_22b(64);
  p.model.heads = p.model.query_groups = 32;
  p.model.hidden = 32 * 100 + 8;
  p.model.kv_channels = p.model.hidden / 32;
  p.model.ffn_hidden = 4 * p.model.hidden;
  EXPECT_EQ(rule(p, {.tensor = 8}), "");  // kv-channels is then independent of the hidden size
}

TEST(Rules, H2HeadsAreAMultipleOfTensor) {
  PlanProblem p = gpt_22b(48);
  EXPECT_EQ(rule(p, {.tensor = 3}), "H2");
  p.model.heads = p.model.query_groups = 48;
  EXPECT_EQ(rule(p, {.tensor = 3}), "");
}

TEST(Rules, H3GroupsAreMultipleOrDivisorOfTensor) {
  PlanProblem p = gpt_22b(64);
  p.model.group_query = true;
  p.model.query_groups = 6;
  EXPECT_EQ(rule(p, {.tensor = 4, .pipeline = 2}), "H3");
  p.model.query_groups = 2;
  EXPECT_EQ(rule(p, {.tensor = 4, .pipeline = 2}), "");
}

TEST(Rules, H4FeedForwardWidthIsAMultipleOfTensor) {
  PlanProblem p = gpt_22b(64);
  p.model.ffn_hidden = 24577;
  EXPECT_EQ(rule(p, {.tensor = 8}), "H4");
  p.model.ffn_hidden = 24576;
  EXPECT_EQ(rule(p, {.tensor = 8}), "");
}

TEST(Rules, L1StagesHaveTheLayersOfTheModel) {
  PlanProblem p = gpt_22b(64);
  EXPECT_EQ(rule(p, {.tensor = 8, .pipeline = 8, .first_layers = 40, .last_layers = 5}),
            "L1");  // 3 layers are left for 6 stages
  EXPECT_EQ(rule(p, {.tensor = 8, .pipeline = 8, .first_layers = 5, .last_layers = 5}), "");
  p.stage_layers = {10, 14, 14, 9};
  EXPECT_EQ(rule(p, {.tensor = 8, .pipeline = 4}), "L1");  // the table has 47 of 48 layers
  p.stage_layers.back() = 10;
  EXPECT_EQ(rule(p, {.tensor = 8, .pipeline = 4}), "");
  EXPECT_EQ(rule(p, {.tensor = 8, .pipeline = 2}), "L1");
}

TEST(Rules, L2WithEmbeddingAndHeadCountedTheSumDivides) {
  PlanProblem p = gpt_22b(128);
  p.model.layers = 46;
  Candidate c{.tensor = 8, .pipeline = 4, .chunks = 3, .first_layers = 11, .last_layers = 11};
  c.counts_embedding = c.counts_head = true;
  EXPECT_EQ(rule(p, c), "");  // 48 / (4 * 3)
  c.chunks = 5;
  EXPECT_EQ(rule(p, c), "V1");
  c.chunks = 3;
  c.counts_embedding = c.counts_head = false;
  EXPECT_EQ(rule(p, c), "V1");  // 46 / (4 * 3)
}

// transformer_config.py counts the embedding and the head each by its own flag: (31 + 1) % (2 * 4) == 0.
TEST(Rules, L2CountsTheHeadAlone) {
  PlanProblem p = gpt_22b(16);
  p.model.layers = 31;
  Candidate c{.tensor = 8, .pipeline = 2, .chunks = 4, .first_layers = 16, .last_layers = 15};
  c.counts_head = true;
  EXPECT_EQ(rule(p, c), "");
  p.model.layers = 30;
  c.first_layers = 15;
  EXPECT_EQ(rule(p, c), "V1");  // 31 / (2 * 4)
}

// Megatron-Bridge's performance summary has runs of Llama 3.1 405B with pipeline 16 in 8 chunks, one layer in
// each: the first has the embedding alone, the last the head.
TEST(Rules, V1AnEndThatCountsMayBeAChunkOfItsOwn) {
  PlanProblem p = gpt_22b(128);
  p.model.layers = 126;
  Candidate c{.tensor = 8, .pipeline = 16, .chunks = 8, .first_layers = 7, .last_layers = 7};
  c.counts_embedding = c.counts_head = true;
  EXPECT_EQ(rule(p, c), "");  // 128 / (16 * 8)
  c.counts_head = false;
  c.last_layers = 0;
  p.model.layers = 127;
  EXPECT_EQ(rule(p, c), "");
  c.chunks = 16;
  EXPECT_EQ(rule(p, c), "V1");  // 8 layers a stage
}

TEST(Rules, V1ChunksDivideTheLayersOfAPipeline) {
  EXPECT_EQ(rule(gpt_22b(64), {.tensor = 8, .pipeline = 8, .chunks = 4}), "V1");  // 6 layers per stage
  EXPECT_EQ(rule(gpt_22b(64), {.tensor = 8, .pipeline = 8, .chunks = 2}), "");
  EXPECT_EQ(rule(gpt_22b(8), {.tensor = 8, .pipeline = 1, .chunks = 2}), "V1");
}

TEST(Rules, V1NamesTheNearestNumbersOfChunks) {
  const std::string six = reason(gpt_22b(64), {.tensor = 8, .pipeline = 8, .chunks = 4});
  EXPECT_NE(six.find("nearest that work: 3, 6 chunks"), std::string::npos) << six;
  PlanProblem p = gpt_22b(128);
  p.model.layers = 126;  // not a multiple of 16 stages
  const std::string uneven = reason(p, {.tensor = 8, .pipeline = 16, .chunks = 3});
  EXPECT_NE(uneven.find("; 1 chunk works"), std::string::npos) << uneven;
}

TEST(Rules, V2InterleavingNeedsMicrobatchesInGroupsOfThePipeline) {
  EXPECT_EQ(rule(gpt_22b(64), {.tensor = 4, .pipeline = 16, .chunks = 3, .micro_batch = 2}),
            "V2");  // 8 microbatches, 16 stages
  EXPECT_EQ(rule(gpt_22b(64), {.tensor = 4, .pipeline = 16, .chunks = 3, .micro_batch = 1}), "");
}

TEST(Rules, S1SequenceParallelismNeedsTensorThatDividesTheSequence) {
  EXPECT_EQ(rule(gpt_22b(64), {.tensor = 1, .pipeline = 4, .sequence = true}), "S1");
  PlanProblem p = gpt_22b(64);
  p.model.seq_length = 2044;
  EXPECT_EQ(rule(p, {.tensor = 8, .sequence = true}), "S1");
  EXPECT_EQ(rule(p, {.tensor = 4, .pipeline = 2, .sequence = true}), "");
}

TEST(Rules, C1SequenceIsAMultipleOfTwiceTheContextRanks) {
  PlanProblem p = gpt_22b(64);
  p.model.seq_length = 2056;
  EXPECT_EQ(rule(p, {.tensor = 4, .context = 8}), "C1");
  EXPECT_EQ(rule(p, {.tensor = 4, .context = 4}), "");
}

// Transformer Engine's attention that keeps the scores does not divide a sequence over context ranks.
TEST(Rules, C2ContextNeedsAttentionThatKeepsNoScores) {
  PlanProblem p = gpt_22b(64);
  p.global_batch = 64;
  EXPECT_EQ(rule(p, {.context = 2}), "");
  for (const AttentionKernel kernel : {AttentionKernel::kTorch, AttentionKernel::kFusedSoftmax}) {
    p.software.attention = kernel;
    EXPECT_EQ(rule(p, {.context = 2}), "C2");
    EXPECT_EQ(rule(p, {.tensor = 2}), "");
  }
  EXPECT_EQ(reason(p, {.context = 2}), "context 2 needs attention that keeps no scores");
}

// T1, Megatron's padding: 50257 ids are padded to a multiple of 128 * tensor.
TEST(Rules, T1VocabularyIsPaddedForTheTensorRanks) {
  EXPECT_EQ(count_parameters(gpt_22b(8).model, 8).embedding, 51200.0 / 8 * 6144 + 2048.0 * 6144);
}

// R1: all, some or none of a stage's layers are recomputed whole.
TEST(Rules, R1RecomputedLayersAreOfAStage) {
  const PlanProblem p = gpt_22b(64);
  const auto kept = [&](Recomputed what, int layers) {
    Candidate c{.tensor = 8, .recompute_layers = layers, .recompute = what};
    EXPECT_FALSE(complete(p, c));
    return memory_estimate(p, c, 0).activations;
  };
  const double none = kept(Recomputed::kNone, 0), half = kept(Recomputed::kFull, 24),
               full = kept(Recomputed::kFull, 0);
  EXPECT_LT(full, half);
  EXPECT_LT(half, none);
  EXPECT_EQ(full, kept(Recomputed::kFull, 48));
}

// W3: tensor ranks beyond a machine communicate over the network.
TEST(Rules, W3TensorRanksBeyondAMachineUseTheNetwork) {
  const PlanProblem p = gpt_22b(64);
  EXPECT_GT(group_link(p, 8, 1).bandwidth, 4 * group_link(p, 16, 1).bandwidth / 8);
  EXPECT_GT(price_layer(p, {.tensor = 16}).forward_comm, 2 * price_layer(p, {.tensor = 8}).forward_comm);
}

// F1: without a kernel that fuses scale, mask and softmax, there are more passes over the scores.
TEST(Rules, F1ScoresWithoutAJoinedKernelAreSlower) {
  PlanProblem p = gpt_22b(64);
  p.software.attention = AttentionKernel::kFusedSoftmax;
  const double joined = price_layer(p, {.tensor = 16, .micro_batch = 1}).forward;  // 4 heads
  p.model.heads = p.model.query_groups = 96;
  const double apart =
      price_layer(p, {.tensor = 16, .micro_batch = 1}).forward;  // 6 heads are no multiple of 4
  EXPECT_GT(apart, 1.3 * joined);
}

// Megatron's parallel_state.py and arguments.py: world % (etp * ep * pp) == 0, experts % ep == 0.
TEST(Rules, W2ExpertsAndDevicesAreMultiplesOfTheExpertRanks) {
  PlanProblem p = mixtral(64);
  EXPECT_EQ(rule(p, {.expert = 3}), "W2");
  EXPECT_EQ(reason(p, {.expert = 3}), "8 experts are not a multiple of expert 3; nearest that work: 2, 4");
  EXPECT_EQ(rule(p, {.expert = 4}), "");
  EXPECT_EQ(rule(p, {.expert = 16}), "W2");
  EXPECT_NE(reason(p, {.expert = 16}).find("; nearest that work: 8"), std::string::npos);
  p.model.experts = 16;
  EXPECT_EQ(rule(p, {.tensor = 2, .pipeline = 8, .expert = 16, .sequence = true}), "W2");  // 8 ranks each
  EXPECT_EQ(
      reason(p, {.tensor = 2, .pipeline = 8, .expert = 16, .sequence = true}),
      "64 devices are not a multiple of expert-tensor 1 * expert 16 * pipeline 8 = 128; nearest that work: "
      "8 as expert");
  EXPECT_EQ(rule(p, {.tensor = 2, .pipeline = 8, .expert = 8, .sequence = true}), "");
  EXPECT_EQ(rule(p, {.tensor = 2, .pipeline = 8, .expert = 8, .expert_tensor = 2, .sequence = true}), "W2");
  EXPECT_EQ(rule(p, {.tensor = 2, .pipeline = 8, .expert = 4, .expert_tensor = 2, .sequence = true}), "");
  p.model.experts.reset();
  EXPECT_EQ(rule(p, {.expert = 2}), "W2");  // a dense model
}

// The advice names numbers that work, or the size that must change first.
TEST(Rules, W2AdvisesOnlyWhatWorks) {
  PlanProblem p = mixtral(2);
  EXPECT_EQ(reason(p, {.expert = 1, .expert_tensor = 4}),
            "2 devices are not a multiple of expert-tensor 4 * expert 1 * pipeline 1 = 4; expert-tensor must "
            "divide "
            "the 2 ranks of a pipeline stage");
  p.machine.world = p.machine.local_world = 6;
  p.global_batch = 6;
  p.model.experts = 9;
  EXPECT_EQ(reason(p, {.expert = 1, .expert_tensor = 4}),
            "6 devices are not a multiple of expert-tensor 4 * expert 1 * pipeline 1 = 4; expert-tensor must "
            "divide "
            "the 6 ranks of a pipeline stage");
  EXPECT_EQ(
      reason(p, {.expert = 9, .expert_tensor = 2}),
      "6 devices are not a multiple of expert-tensor 2 * expert 9 * pipeline 1 = 18; nearest that work: 3 as "
      "expert");
  EXPECT_EQ(rule(p, {.expert = 3, .expert_tensor = 2}), "");
}

// token_dispatcher.py: "DeepEP dispatcher requires TPxEP > 1", where TP is expert-tensor.
TEST(Rules, E1DeepEpNeedsSeveralRanks) {
  PlanProblem p = mixtral(64);
  EXPECT_EQ(rule(p, {}), "");
  p.model.dispatcher = Dispatcher::kFlex;
  EXPECT_EQ(rule(p, {}), "E1");
  EXPECT_EQ(rule(p, {.tensor = 2, .sequence = true}), "E1");
  EXPECT_EQ(rule(p, {.expert = 2}), "");
  EXPECT_EQ(rule(p, {.tensor = 2, .expert_tensor = 2, .sequence = true}), "");
}

// deepseek-ai/DualPipe: an even number of ranks, and of chunks, of which there are twice as many at least.
TEST(Rules, D1DualPipeNeedsPairsOfStages) {
  PlanProblem p = gpt_22b(48);
  p.global_batch = 96;
  p.software.schedule = Schedule::kDualPipe;
  EXPECT_EQ(rule(p, {.tensor = 4, .pipeline = 4}), "");                       // 32 microbatches
  EXPECT_EQ(rule(p, {.tensor = 2, .pipeline = 3}), "D1");                     // stages that have no partner
  EXPECT_EQ(rule(p, {.tensor = 1, .pipeline = 12}), "");                      // 24 microbatches
  EXPECT_EQ(rule(p, {.tensor = 1, .pipeline = 12, .micro_batch = 2}), "D1");  // 12
  EXPECT_EQ(rule(p, {.tensor = 1}), "");
}

// transformer_config.py: "CUDA graphs not supported with activation recomputation."
TEST(Rules, G1GraphsExcludeRecomputation) {
  PlanProblem p = gpt_22b(64);
  const Candidate full{.tensor = 8, .recompute = Recomputed::kFull};
  EXPECT_EQ(rule(p, full), "");
  p.software.cuda_graphs = true;
  EXPECT_EQ(rule(p, full), "G1");
  EXPECT_EQ(rule(p, {.tensor = 8, .recompute = Recomputed::kAttention}), "G1");
  EXPECT_EQ(rule(p, {.tensor = 8}), "");
  for (const Plan& plan : search_plans(p, {}).plans) EXPECT_EQ(plan.candidate.recompute, Recomputed::kNone);
  p.software.code_base = "llmq";  // which replays what it recomputes
  EXPECT_EQ(rule(p, full), "");
}

// transformer_config.py's assertions about overlap_moe_expert_parallel_comm.
TEST(Rules, E2OverlappedExchangesNeedExpertRanksChunksAndTheirActivations) {
  PlanProblem p = mixtral(64);
  const Candidate c{.expert = 8};
  EXPECT_EQ(rule(p, {.expert = 8, .recompute = Recomputed::kFull}), "");
  p.software.overlap_exchange = true;
  EXPECT_EQ(rule(p, c), "");
  EXPECT_EQ(rule(p, {}), "E2");
  EXPECT_EQ(reason(p, {}), "--overlap-moe-expert-parallel-comm needs expert above 1");
  EXPECT_EQ(rule(p, {.pipeline = 2, .expert = 8}), "E2");
  EXPECT_EQ(rule(p, {.pipeline = 2, .expert = 8, .chunks = 2}), "");
  EXPECT_EQ(rule(p, {.expert = 8, .recompute = Recomputed::kFull}), "E2");
  EXPECT_EQ(rule(p, {.expert = 8, .recompute = Recomputed::kAttention}), "");
  const auto with = [&](auto change) {
    PlanProblem other = p;
    change(other);
    return rule(other, c);
  };
  EXPECT_EQ(with([](PlanProblem& x) { x.model.dispatcher = Dispatcher::kFlex; }), "");
  EXPECT_EQ(with([](PlanProblem& x) { x.model.dispatcher = Dispatcher::kAllGather; }), "E2");
  EXPECT_EQ(with([](PlanProblem& x) { x.model.predicted = 1; }), "");
  EXPECT_EQ(with([](PlanProblem& x) { x.model.predicted = 2; }), "E2");
  EXPECT_EQ(with([](PlanProblem& x) { x.precision = Precision::kFloat32; }), "E2");
  EXPECT_EQ(with([](PlanProblem& x) { x.model.shared_overlap = true; }), "E2");
  p.software.schedule = Schedule::kDualPipe;  // which overlaps them without chunks
  EXPECT_EQ(rule(p, {.pipeline = 2, .expert = 8}), "");
  EXPECT_EQ(reason(p, {}), "--software-features dualpipe needs expert above 1");
}

// "Expert bias for aux-loss-free routing only supports 'sigmoid' and 'sqrtsoftplus' score functions".
TEST(Rules, E3ARoutersBiasNeedsASigmoid) {
  PlanProblem p = mixtral(64);
  p.model.score_function = "softmax";
  EXPECT_EQ(rule(p, {}), "");
  p.model.expert_bias = true;
  EXPECT_EQ(rule(p, {}), "E3");
  p.model.score_function = "sigmoid";
  EXPECT_EQ(rule(p, {}), "");
  p.model.score_function.reset();  // unset: a sigmoid is printed
  EXPECT_EQ(rule(p, {}), "");
}

// "Bias in Moe is only supported when ETP==1".
TEST(Rules, E4ExpertsWithBiasesAreWholeOnTheirRank) {
  PlanProblem p = mixtral(64);
  const Candidate c{.tensor = 2, .expert_tensor = 2, .sequence = true};
  EXPECT_EQ(rule(p, c), "");
  p.model.linear_bias = true;
  EXPECT_EQ(rule(p, c), "E4");
  EXPECT_EQ(reason(p, c),
            "experts with biases need expert-tensor 1, not 2; give --disable-bias-linear, or 1");
  EXPECT_EQ(rule(p, {.tensor = 2, .sequence = true}), "");
}

// "moe_expert_capacity_factor only works with alltoall token dispatcher" (earlier Megatron Core), and
// "with aux_loss, seq_aux_loss, global_aux_loss or none load balancing".
TEST(Rules, E5CapacitiesNeedTheAllToAllAndALossOrNone) {
  PlanProblem p = mixtral(64);
  p.model.dispatcher = Dispatcher::kFlex;
  EXPECT_EQ(rule(p, {.expert = 8}), "");
  p.model.capacity = 1.25;
  EXPECT_EQ(rule(p, {.expert = 8}), "E5");
  p.model.dispatcher = Dispatcher::kAllGather;
  EXPECT_EQ(rule(p, {.expert = 8}), "E5");
  p.model.dispatcher = Dispatcher::kAllToAll;
  EXPECT_EQ(rule(p, {.expert = 8}), "");
  p.model.balance = {"seq_aux_loss", "none"};
  EXPECT_EQ(rule(p, {.expert = 8}), "");
  p.model.balance = {"sinkhorn"};
  EXPECT_EQ(rule(p, {.expert = 8}), "E5");
}

// "moe_shared_expert_overlap only works with alltoall or flex token dispatcher".
TEST(Rules, E6SharedExpertsBesideTheExchangeNeedOne) {
  PlanProblem p = mixtral(64);
  p.model.shared_ffn = 4096;
  p.model.dispatcher = Dispatcher::kAllGather;
  EXPECT_EQ(rule(p, {.expert = 8}), "");
  p.model.shared_overlap = true;
  EXPECT_EQ(rule(p, {.expert = 8}), "E6");
  p.model.dispatcher = Dispatcher::kFlex;
  EXPECT_EQ(rule(p, {.expert = 8}), "");
}

TEST(Rules, W2ExpertDataIsTheQuotient) {
  const PlanProblem p = mixtral(64);
  Candidate c{.tensor = 2, .pipeline = 2, .expert = 4, .expert_tensor = 2, .sequence = true};
  ASSERT_FALSE(complete(p, c));
  EXPECT_EQ(c.expert_data(), 64 / (2 * 4 * 2));
}

// Megatron's MoE layer refuses to train with tensor ranks and without sequence parallelism.
TEST(Rules, S2ExpertsWithTensorRanksNeedSequenceParallelism) {
  const PlanProblem p = mixtral(64);
  EXPECT_EQ(rule(p, {.tensor = 2}), "S2");
  EXPECT_EQ(reason(p, {.tensor = 2}),
            "experts with tensor 2 need sequence parallelism; give --sequence-parallel, or tensor 1");
  EXPECT_EQ(rule(p, {.tensor = 2, .sequence = true}), "");
  EXPECT_EQ(rule(p, {.tensor = 1}), "");
}

TEST(Rules, H4ExpertsAreMultiplesOfTheRanksThatShareThem) {
  PlanProblem p = mixtral(64);
  p.model.expert_ffn = 14337;
  EXPECT_EQ(rule(p, {.tensor = 2, .expert_tensor = 2, .sequence = true}), "H4");
  EXPECT_EQ(rule(p, {.tensor = 2, .sequence = true}), "");
  p.model.expert_ffn = 14336;
  p.model.shared_ffn = 4097;
  EXPECT_EQ(rule(p, {.tensor = 2, .sequence = true}), "H4");
}

}  // namespace
}  // namespace megalith
