#include "libcore/plan/price/adapter_price.h"

#include <cmath>

#include <gtest/gtest.h>

#include "libcore/plan/price/memory_estimate.h"
#include "libcore/plan/price/time_model.h"
#include "libcore/plan/price/trainer.h"
#include "libcore/train/step/memory.h"
#include "tests/plan/problems.h"

namespace megalith {
namespace {

using test::gpt;
using test::llama;

ModelConfig llama_3_8b() {
  return llama(32, 4096, 32, 8, 14336, 128256);
}

PlanProblem on_h100(int world) {
  PlanProblem p;
  p.model = llama_3_8b();
  p.machine = {find_accelerator("H100"), world, 8};
  p.global_batch = 64;
  return p;
}

PlanProblem with_adapters(PlanProblem p, int rank, bool eight_bits = false) {
  p.tuning = {.finetunes = true, .lora_rank = rank, .eight_bits = eight_bits};
  return p;
}

Candidate legal(const PlanProblem& p, Candidate c) {
  EXPECT_FALSE(complete(p, c));
  return c;
}

// What peft prints as "trainable params" for adapters of rank 8 on all linear layers.
TEST(AdapterParameters, AreThoseThatPeftCounts) {
  const auto of_model = [](const ModelConfig& m) { return adapter_parameters(m, 1, 8) * m.layers; };
  EXPECT_EQ(of_model(llama(32, 4096, 32, 32, 11008, 32000)), 19'988'480);  // Llama 2 7B
  EXPECT_EQ(of_model(llama_3_8b()), 20'971'520);                           // Llama 3 8B
  EXPECT_EQ(of_model(llama(28, 3584, 28, 4, 18944, 152064)), 20'185'088);  // Qwen2 7B
  // GPT-2: c_attn, attn.c_proj, c_fc and mlp.c_proj, so that queries, keys and values share one input matrix.
  EXPECT_EQ(of_model(gpt(12, 768, 12, 1024, 50257)),
            12 * 8 * ((768 + 3 * 768) + (768 + 768) + (768 + 3072) + (3072 + 768)));
}

// The closed forms must not drift from the adapters that are trained.
TEST(AdapterParameters, AreThoseOfTheRealRun) {
  for (const ModelConfig& m : {gpt(1, 64, 4, 32, 512), llama(1, 64, 4, 2, 176, 512)})
    for (const int tensor : {1, 2})
      for (const bool eight_bits : {false, true}) {
        PlanProblem p = with_adapters(test::on_this_processor(512, 2), 8, eight_bits);
        p.machine.world = p.machine.local_world = tensor;
        const auto with_layers = [&](int layers) {
          p.model = m;
          p.model.layers = layers;
          p.model.seq_length = p.model.max_positions = 32;
          const Candidate c = legal(p, {.tensor = tensor, .micro_batch = 2});
          return run_memory(trainer_run(p, trainer_configuration(p, c)));
        };
        const RunMemory one = with_layers(1), two = with_layers(2);
        const ParameterCount all = count_parameters(m, tensor);
        EXPECT_EQ(static_cast<double>(two.parameters - one.parameters),
                  all.block + adapter_parameters(m, tensor, 8));
        constexpr double kTensors = 12 + 14 + 4;  // of a layer, its adapters and their scales, at most
        constexpr double kAlignment = 256;        // bytes at multiples of which a tensor begins
        EXPECT_NEAR(static_cast<double>(two.weights - one.weights), weight_bytes(p, all, tensor).block,
                    kTensors * kAlignment)
            << tensor << eight_bits;
        EXPECT_NEAR(static_cast<double>(two.grads - one.grads), 4 * trained_parameters(p, all, tensor).block,
                    kTensors * kAlignment);
      }
}

// By hand: a layer of Llama 3 8B has 4096 (4096 + 2 * 1024 + 4096 + 3 * 14336) elements in matrices with
// 4096 + 2 * 1024 + 4096 + 2 * 14336 + 4096 rows. Eight bits save a byte of each, less four for each row.
TEST(AdapterPrice, EightBitsHalveTheFrozenMatrices) {
  const Candidate c = legal(on_h100(1), {});
  const auto weights = [&](const PlanProblem& p) { return memory_estimate(p, c, 0).parameters; };
  const double wide = weights(with_adapters(on_h100(1), 8)),
               narrow = weights(with_adapters(on_h100(1), 8, true));
  const double elements = 32.0 * 4096 * (2 * 4096 + 2 * 1024 + 3 * 14336),
               rows = 32.0 * (3 * 4096 + 2 * 1024 + 2 * 14336);
  EXPECT_EQ(wide - narrow, elements - 4 * rows);
  EXPECT_EQ(wide - weights(on_h100(1)), 2 * 20'971'520.0);
}

TEST(AdapterPrice, OnlyAdaptersHaveGradientsAndMoments) {
  const PlanProblem p = with_adapters(on_h100(1), 8);
  const MemoryEstimate estimate = memory_estimate(p, legal(p, {}), 0);
  EXPECT_EQ(estimate.gradients, 4 * 20'971'520.0);
  EXPECT_EQ(estimate.optimizer, 12 * 20'971'520.0);
}

// Two of the three products of a linear layer remain: four operations for each parameter and token in place
// of six. Attention and element-wise work are the same.
TEST(AdapterPrice, SavesTheGradientsOfFrozenMatrices) {
  const PlanProblem all = on_h100(1);
  const Candidate c = legal(all, {});
  const auto seconds = [&](const PlanProblem& p) { return step_time(p, c).compute; };
  EXPECT_GT(seconds(with_adapters(all, 1)) / seconds(all), 4.0 / 6);
  EXPECT_LT(seconds(with_adapters(all, 1)) / seconds(all), 5.0 / 6);
  // Both ranks of a pair are multiples of 64, at which products are faster, or neither is.
  EXPECT_LT(seconds(with_adapters(all, 1)), seconds(with_adapters(all, 32)));
  EXPECT_LT(seconds(with_adapters(all, 64)), seconds(with_adapters(all, 512)));
  EXPECT_LT(seconds(with_adapters(all, 8)), seconds(with_adapters(all, 8, true)));
  const double operations =
      model_flops(with_adapters(all, 1), 64) - model_flops(all, 64) * 4 / 6;  // scores, adapters
  EXPECT_GT(operations, 0);
  EXPECT_LT(operations, 0.1 * model_flops(all, 64));
}

TEST(AdapterPrice, DataRanksExchangeAdaptersOnly) {
  const PlanProblem p = with_adapters(on_h100(8), 8);
  const double tuned = step_time(p, legal(p, {})).data_comm,
               whole = step_time(on_h100(8), legal(on_h100(8), {})).data_comm;
  EXPECT_GT(tuned, 0);
  EXPECT_LT(tuned, whole / 20);
  // FSDP shards what is frozen, too.
  const Candidate sharded = legal(p, {.sharding = Sharding::kParameters});
  EXPECT_LT(memory_estimate(p, sharded, 0).parameters, memory_estimate(p, legal(p, {}), 0).parameters / 7);
}

}  // namespace
}  // namespace megalith
