#include "libcore/plan/price/traffic.h"

#include <cmath>

#include "libcore/model/embedding.h"
#include "libcore/model/head.h"
#include "libcore/ops/step_scalars.h"
#include "libcore/parallel/exchange_cut.h"
#include "libcore/plan/price/exchanged.h"
#include "libcore/plan/price/memory_estimate.h"
#include "libcore/plan/price/trainer.h"
#include "libcore/train/step/layout.h"

namespace megalith {
namespace {

constexpr double kFp32 = 4, kFp64 = 8;  // bytes

/// Calls and bytes; products of sizes, so whole numbers.
struct Count {
  double calls = 0, bytes = 0;

  void add(double times, double of_bytes) {
    calls += times;
    bytes += times * of_bytes;
  }
};

/// The step of a plan, counted group by group.
struct Counter {
  Counter(const PlanProblem& problem, const Candidate& candidate)
      : p(problem),
        c(candidate),
        rows(vocabulary_rows(problem.model,
                             {.size = candidate.tensor, .vocabulary = vocabulary_form(problem)})) {
    ModelShape model = p.model;
    model.vocab_size = rows * c.tensor;
    model.vocab_divisor = 1;
    parameters = count_parameters(model, c.tensor);
    for (int stage = 0; stage < c.pipeline; ++stage) again += layers_again(stage);
  }

  const PlanProblem& p;
  const Candidate& c;
  const int64_t rows;    // of a tensor rank's part of a table
  const double bucket =  // parameters
      static_cast<double>(store_options(trainer_run(p, trainer_configuration(p, c))).bucket);
  const ModelShape& m = p.model;
  const ExchangedTensors tensors = exchanged_tensors(p, shape_of(c));
  const double microbatches = static_cast<double>(c.microbatches);
  ParameterCount parameters;
  double again = 0;  // layers whose forward pass runs twice, of all stages

  int layers_again(int stage) const {
    return c.recompute == Recomputed::kFull ? recomputed_layers(c, stage_layers(p, c, stage)) : 0;
  }
  /// How often a step sums gradients: after each microbatch with ZeRO-2.
  double reductions() const { return c.sharding == Sharding::kGradients ? microbatches : 1; }

  /// Blocks of rows in which the head computes its logits.
  double head_blocks() const {
    const int64_t tokens = int64_t{m.seq_length} / c.context * c.micro_batch;
    const int64_t row_bytes = rows * static_cast<int64_t>(p.element());
    const int64_t size = logits_block_rows(tokens, row_bytes, vocabulary_form(p).logits_bytes);
    const int64_t blocks = (tokens + size - 1) / size;
    return static_cast<double>(blocks);
  }
  /// The calls that one exchange of rows becomes where it is cut.
  double calls_of_a_cut() const {
    const ExchangeCut cut = p.machine.device.multiprocessors > 0 ? kGpuExchangeCut : ExchangeCut{};
    int calls = 0;
    for (const RowPiece& piece : cut.pieces({.rows = m.seq_length / c.context,
                                 .bytes = static_cast<size_t>(tensors.hidden),
                                 .ranks = c.tensor,
                                 .sequence = c.sequence}))
      calls += piece.calls();
    return calls;
  }
  Count tensor() const {
    constexpr double kBlocks = 2;  // attention and the feed-forward block
    const TensorCalls forward = (m.layers + again) * layer_calls(c.sequence, kBlocks, true),
                      backward = static_cast<double>(m.layers) * layer_calls(c.sequence, kBlocks, false),
                      ends = 2 * end_calls(c.sequence);
    const double all = forward.all() + backward.all() + ends.all();
    // All are cut but the gathers of inputs that are gathered again, and of the embedding's gradient.
    const double cut = all - backward.again - (c.sequence ? 1 : 0);
    Count out;
    out.bytes = microbatches * all * tensors.hidden;
    out.calls = microbatches * (all + cut * (calls_of_a_cut() - 1));
    // The loss: maximum and sum of each block's rows, then the losses of all rows.
    constexpr double kFiguresOfARow = 3;
    const double losses = kFp32 * m.seq_length / c.context * c.micro_batch;
    out.calls += microbatches * (kFiguresOfARow - 1) * head_blocks() + microbatches;
    out.bytes += microbatches * kFiguresOfARow * losses;
    if (c.sequence) {  // each rank has the gradients of the norms from its own rows
      const double norms = 2.0 * m.layers + 1, tensors_of_a_norm = norm_width(m) / m.hidden;
      out.add(reductions() * norms * tensors_of_a_norm, kFp32 * m.hidden);
    }
    return out;
  }

  /// One of the two context groups, each of which carries a half of the sequence.
  Count context() const {
    constexpr double kRounds = 3;  // forward; again for the backward pass, and the sum of the gradients
    Count out;
    out.add(microbatches * (kRounds * m.layers + again), tensors.keys_values / 2);
    return out;
  }
  Count messages() const {
    Count out;
    out.add(microbatches * (c.pipeline * c.chunks - 1.0), tensors.message);
    return out;
  }
  /// Both ends of the pipeline, where the table is tied.
  Count embedding() const {
    constexpr double kEnds = 2;
    Count out;
    if (c.pipeline > 1) out.add(parameters.head_copy > 0 ? kEnds : 0, kFp32 * parameters.head_copy);
    return out;
  }

  /// The parameters of a stage's units in the order of a backward pass, without a tied table, which is a
  /// bucket of its own.
  std::vector<double> units(int stage) const {
    std::vector<double> out;
    if (stage == c.pipeline - 1) out.push_back(parameters.head);
    out.insert(out.end(), static_cast<size_t>(stage_layers(p, c, stage)), parameters.block);
    if (stage == 0) out.push_back(parameters.embedding - parameters.head_copy);
    return out;
  }
  /// A bucket ends with the unit in which it has reached its size.
  double buckets(int stage) const {
    double count = 0, held = 0;
    for (const double unit : units(stage)) {
      held += unit;
      if (held < bucket) continue;
      held = 0;
      ++count;
    }
    return count + (held > 0 ? 1 : 0);
  }
  Count data() const {
    Count out;
    const double gather = c.sharding == Sharding::kNone ? 0 : 1;
    for (int stage = 0; stage < c.pipeline; ++stage) {
      double inside = 0;
      for (const double unit : units(stage)) inside += unit;
      const bool end = stage == 0 || stage == c.pipeline - 1;
      const double alone = end ? parameters.head_copy : 0;
      out.calls += (reductions() + gather) * buckets(stage) + (1 + gather) * (alone > 0 ? 1 : 0);
      out.bytes += kFp32 * (reductions() * inside + alone) + gather * p.element() * (inside + alone);
    }
    return out;
  }
  Count world() const {
    Count out;
    constexpr double kFigures = StepScalar::kSummed;
    out.add(c.pipeline, kFp64 * kFigures);
    return out;
  }
};

}  // namespace

std::vector<GroupTraffic> step_traffic(const PlanProblem& p, const Candidate& c) {
  const Counter counter(p, c);
  std::vector<GroupTraffic> out;
  const auto add = [&](const char* group, int ranks, const Count& count) {
    if (ranks > 1 && count.calls > 0)
      out.push_back({group, std::llround(count.calls), std::llround(count.bytes)});
  };
  add("tensor", c.tensor, counter.tensor());
  add("context", c.context, counter.context());
  add("context reversed", c.context, counter.context());
  add("pipeline forward", c.pipeline, counter.messages());
  add("pipeline backward", c.pipeline, counter.messages());
  add("embedding", c.pipeline, counter.embedding());
  add("data", c.data * c.context, counter.data());
  add("world", p.machine.world, counter.world());
  return out;
}

}  // namespace megalith
