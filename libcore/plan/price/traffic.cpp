#include "libcore/plan/price/traffic.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "libcore/model/embedding.h"
#include "libcore/model/head.h"
#include "libcore/ops/backend/rank_order.h"
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
  void add(double times, const Count& one) {
    calls += times * one.calls;
    bytes += times * one.bytes;
  }
};

/// A tensor that ranks reduce, and the place among them of the rank that is counted.
struct Reduced {
  double elements, element;  // element: bytes of one
  int ranks, place = 0;
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
  const int64_t rows;  // of a tensor rank's part of a table
  const StoreOptions store = store_options(trainer_run(p, trainer_configuration(p, c)));
  const ModelShape& m = p.model;
  const ExchangedTensors tensors = exchanged_tensors(p, shape_of(c));
  const double microbatches = static_cast<double>(c.microbatches);
  ParameterCount parameters;
  double again = 0;  // layers whose forward pass runs twice, of all stages

  int layers_again(int stage) const {
    return c.recompute == Recomputed::kFull ? recomputed_layers(c, stage_layers(p, c, stage)) : 0;
  }
  /// A reduction after which each rank has its part of the sum.
  Count scatter(const Reduced& of) const {
    if (!p.sends_parts()) return {1, of.elements * of.element};
    return sent(ordered_parts_sent(std::llround(of.elements), of.place, of.ranks), of.element);
  }
  /// A reduction after which each rank has the sum.
  Count sum(const Reduced& of) const {
    Count out = scatter(of);
    if (p.sends_parts())
      out.add(1, sent(ordered_sum_sent(std::llround(of.elements), of.place, of.ranks), of.element));
    return out;
  }
  static Count sent(const OrderedSends& sends, double element) {
    return {static_cast<double>(sends.calls), static_cast<double>(sends.elements) * element};
  }
  /// How often a step sums gradients: after each microbatch with ZeRO-2.
  double reductions() const { return c.sharding == Sharding::kGradients ? microbatches : 1; }

  /// Rows of a context rank's part of a micro-batch.
  int64_t tokens() const { return int64_t{m.seq_length} / c.context * c.micro_batch; }
  /// Rows of each block in which the head computes its logits, but for the last one.
  int64_t head_block() const {
    const int64_t row_bytes = rows * static_cast<int64_t>(p.element());
    return logits_block_rows(tokens(), row_bytes, vocabulary_form(p).logits_bytes);
  }
  /// The sums of the losses of a micro-batch: maximum and sum of each block's rows, then the losses of all.
  Count losses() const {
    constexpr double kFiguresOfABlock = 2;
    Count out;
    const int64_t block = head_block();
    for (int64_t row = 0; row < tokens(); row += block)
      out.add(kFiguresOfABlock, sum({static_cast<double>(std::min(block, tokens() - row)), kFp32, c.tensor}));
    out.add(1, sum({static_cast<double>(tokens()), kFp32, c.tensor}));
    return out;
  }
  /// The sums of norms over all heads, one of queries and one of keys for each token.
  Count head_sums() const {
    constexpr double kKinds = 2;
    return sum({kKinds * static_cast<double>(tokens()), kFp32, c.tensor});
  }
  std::vector<RowPiece> pieces_of_hidden() const {
    const ExchangeCut cut = p.machine.device.multiprocessors > 0 ? kGpuExchangeCut : ExchangeCut{};
    return cut.pieces({.rows = m.seq_length / c.context,
                       .bytes = static_cast<size_t>(tensors.hidden),
                       .ranks = c.tensor,
                       .sequence = c.sequence});
  }
  /// A gather, a scatter or a sum of hidden states that is cut.
  Count cut_gather() const {
    Count out{.bytes = tensors.hidden};
    for (const RowPiece& piece : pieces_of_hidden()) out.calls += piece.calls();
    return out;
  }
  /// In rank order each rank sends the others their parts, however the rows are cut.
  Count cut_scatter() const {
    return p.sends_parts() ? scatter({tensors.hidden / p.element(), p.element(), c.tensor}) : cut_gather();
  }
  Count cut_sum() const {
    const int64_t positions = m.seq_length / c.context;
    const double row = tensors.hidden / p.element() / static_cast<double>(positions);
    Count out;
    for (const RowPiece& piece : pieces_of_hidden())
      out.add(1, sum({static_cast<double>(piece.end - piece.begin) * row, p.element(), c.tensor}));
    return out;
  }
  Count tensor() const {
    constexpr double kBlocks = 2;  // attention and the feed-forward block
    TensorCalls all = (m.layers + again) * layer_calls(c.sequence, kBlocks, true);
    all += static_cast<double>(m.layers) * layer_calls(c.sequence, kBlocks, false);
    all += 2 * end_calls(c.sequence);
    // Cut are all but the gathers of inputs that are gathered again, and of the embedding's gradient.
    const double whole = all.again + (c.sequence ? 1 : 0);
    Count out;
    out.add(microbatches * all.sums, cut_sum());
    out.add(microbatches * all.scatters, cut_scatter());
    out.add(microbatches * (all.gathers - whole), cut_gather());
    out.add(microbatches * whole, tensors.hidden);
    out.add(microbatches, losses());
    if (m.qk_norm_all_heads) out.add(microbatches * (2.0 * m.layers + again), head_sums());
    if (c.sequence) {  // each rank has the gradients of the norms from its own rows
      const double norms = static_cast<double>(m.layer_norms()) * m.layers + 1,
                   tensors_of_a_norm = norm_width(m) / m.hidden;
      out.add(reductions() * norms * tensors_of_a_norm,
              sum({static_cast<double>(m.hidden), kFp32, c.tensor}));
    }
    return out;
  }

  /// One of the two context groups, each of which carries a half of the sequence; `place`: that of the
  /// counted rank in it.
  Count context(int place) const {
    constexpr double kGathers = 2;  // forward, and again for the backward pass
    Count out;
    out.add(microbatches * (kGathers * m.layers + again), tensors.keys_values / 2);
    out.add(microbatches * m.layers,
            scatter({tensors.keys_values / 2 / p.element(), p.element(), c.context, place}));
    return out;
  }
  Count messages() const {
    Count out;
    out.add(microbatches * (c.pipeline * c.chunks - 1.0), tensors.message);
    return out;
  }
  /// Both ends of the pipeline, where the table is tied.
  Count embedding() const {
    constexpr int kEnds = 2;
    Count out;
    if (c.pipeline > 1 && parameters.head_copy > 0)
      for (int end = 0; end < kEnds; ++end) out.add(1, sum({parameters.head_copy, kFp32, kEnds, end}));
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
  /// The parameters of a stage's part of a tied table.
  double alone(int stage) const { return stage == 0 || stage == c.pipeline - 1 ? parameters.head_copy : 0; }
  static double sum_of(const std::vector<double>& numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), 0.0);
  }
  /// A bucket ends with the unit in which it has reached its size.
  double buckets(int stage) const {
    double count = 0, held = 0;
    const std::vector<double> all = units(stage);
    const double full =
        store.buckets == 0 ? static_cast<double>(store.bucket) : (sum_of(all) + alone(stage)) / store.buckets;
    for (const double unit : all) {
      held += unit;
      if (held < full) continue;
      held = 0;
      ++count;
    }
    return count + (held > 0 ? 1 : 0);
  }
  Count data() const {
    Count out;
    const double gather = c.sharding == Sharding::kNone ? 0 : 1;
    // A bucket has equal parts. In rank order a rank sends each other one its part, and without sharding each
    // its sum.
    const double ranks = c.data * c.context, messages = (gather > 0 ? 1 : 2) * (ranks - 1);
    const double calls = p.sends_parts() ? messages : 1, share = p.sends_parts() ? messages / ranks : 1;
    for (int stage = 0; stage < c.pipeline; ++stage) {
      const double inside = sum_of(units(stage)), table = alone(stage);
      out.calls += (reductions() * calls + gather) * buckets(stage) + (table > 0 ? calls + gather : 0);
      out.bytes += kFp32 * share * (reductions() * inside + table) + gather * p.element() * (inside + table);
    }
    return out;
  }
  Count world() const {
    Count out;
    constexpr double kFigures = StepScalar::kSummed;
    const int stride = c.tensor * c.context * c.data;  // between the ranks of two stages
    for (int stage = 0; stage < c.pipeline; ++stage)
      out.add(1, sum({kFigures, kFp64, p.machine.world, stage * stride}));
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
  add("context", c.context, counter.context(0));
  add("context reversed", c.context, counter.context(c.context - 1));
  add("pipeline forward", c.pipeline, counter.messages());
  add("pipeline backward", c.pipeline, counter.messages());
  add("embedding", c.pipeline, counter.embedding());
  add("data", c.data * c.context, counter.data());
  add("world", p.machine.world, counter.world());
  return out;
}

}  // namespace megalith
