// Weights in another type than the activations, for each instruction set: also those of 8 bits, which only
// the CPU takes, and what a row gets beside others. The cases for every backend have those of 16 bits as
// well.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include <gtest/gtest.h>

#include "libcore/ops/cpu/thread_team.h"
#include "tests/ops/cases.h"
#include "tests/ops/instruction_sets.h"

namespace megalith::test {
namespace {

constexpr double kTolerance = 2e-6;  // a few ulp of fp32, more where a sum of k terms rounds k times

class Narrow : public InstructionSetTest {
 protected:
  Stream stream() { return backend_->make_stream(); }
};
INSTANTIATE_TEST_SUITE_P(EachInstructionSet, Narrow, kInstructionSets, instruction_set_name);

struct Sizes {
  int64_t n, out, in;
};
const std::vector<Sizes> kSizes{{1, 1, 1},    {1, 5, 3},    {1, 70, 129}, {2, 33, 64}, {3, 9, 31},
                                {4, 64, 100}, {7, 130, 48}, {8, 67, 257}, {9, 40, 65}, {40, 300, 96},
                                {32, 70, 33}, {33, 40, 70}, {90, 300, 96}};

/// Weights of any type, as the kernels read them.
struct Weights {
  View view, scales;
  Values values;  // the numbers that `view` represents
};

Weights make_weights(Bed& bed, DType dtype, const Shape& shape) {
  Weights out{.view = {}, .scales = {}, .values = random_values(shape.elements(), 2)};
  if (dtype != DType::kI8) {
    out.view = bed.put(dtype, shape, out.values);
    return out;
  }
  const View wide = bed.put(DType::kF32, shape, out.values);
  out.view = bed.empty(DType::kI8, shape);
  out.scales = bed.empty(DType::kF32, {shape[0]});
  run(bed.stream(), QuantizeRows{.q = out.view, .scales = out.scales, .w = wide});
  for (int64_t row = 0; row < shape[0]; ++row)
    for (int64_t i = 0; i < shape[1]; ++i)
      out.values[static_cast<size_t>(row * shape[1] + i)] =
          static_cast<double>(out.view.as<int8_t>()[row * shape[1] + i]) *
          static_cast<double>(out.scales.as<float>()[row]);
  return out;
}

/// Whether a product of many rows may round x to bf16.
bool may_round_x(DType weights) {
  return weights == DType::kBf16 || weights == DType::kI8;
}

TEST_P(Narrow, ProjectsAsTheReference) {
  Stream stream = this->stream();
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16, DType::kI8})
    for (const auto& [n, out, in] : kSizes)
      for (const bool with_bias : {false, true}) {
        Bed bed(stream);
        Values x = random_values(n * in, 1), bias = random_values(out, 3);
        const View x_view = bed.put(DType::kF32, {n, in}, x), bias_view = bed.put(DType::kF32, {out}, bias);
        const Weights w = make_weights(bed, dtype, {out, in});
        const View y = bed.empty(DType::kF32, {n, out});
        run(stream, Project{.y = y,
                            .x = x_view,
                            .w = w.view,
                            .scales = w.scales,
                            .bias = with_bias ? ConstView(bias_view) : ConstView{}});
        if (n > Project::kFewRows && may_round_x(dtype)) continue;  // see RoundsManyRowsToBf16
        Values want = reference_gemm({.m = n, .n = out, .k = in, .trans_b = true}, x, w.values);
        for (size_t i = 0; with_bias && i < want.size(); ++i) want[i] += bias[i % static_cast<size_t>(out)];
        EXPECT_EQ(disagreement({"y", bed.get(y), want, kTolerance, std::sqrt(static_cast<double>(in))}), "")
            << name_of(dtype) << " " << n << " x " << out << " x " << in;
      }
}

/// The products of x [n, in] and `w` plus the bias [out], in fp64.
Values projected(const Sizes& s, const Values& x, const Values& w, const Values& bias) {
  Values y = reference_gemm({.m = s.n, .n = s.out, .k = s.in, .trans_b = true}, x, w);
  for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
  return y;
}

// All of x is rounded to bf16 and nothing else is, where the processor has products of bf16; elsewhere
// nothing is rounded. So the result is one of two, as exactly as other products.
TEST_P(Narrow, RoundsManyRowsToBf16) {
  Stream stream = this->stream();
  // The weights of the last are converted in two panels.
  const std::vector<Sizes> all{{17, 40, 70}, {32, 70, 33}, {90, 300, 96}, {17, 2060, 2048}};
  for (const DType dtype : {DType::kBf16, DType::kI8})
    for (const Sizes& s : all) {
      Bed bed(stream);
      const Weights w = make_weights(bed, dtype, {s.out, s.in});
      Values bias = random_values(s.out, 3), x = random_values(s.n * s.in, 1);
      const View y = bed.empty(DType::kF32, {s.n, s.out}), bias_view = bed.put(DType::kF32, {s.out}, bias),
                 x_view = bed.put(DType::kF32, {s.n, s.in}, x);
      run(stream, Project{.y = y, .x = x_view, .w = w.view, .scales = w.scales, .bias = bias_view});
      Values rounded = x;
      bed.put(DType::kBf16, {s.n, s.in}, rounded);  // rounds them
      const auto differs = [&](const Values& of) {
        const double size = std::sqrt(static_cast<double>(s.in));
        return disagreement({"y", bed.get(y), projected(s, of, w.values, bias), kTolerance, size});
      };
      const std::string from_rounded = differs(rounded);
      if (from_rounded.empty()) continue;
      EXPECT_EQ(differs(x), "") << name_of(dtype) << " " << s.n << "; x rounded: " << from_rounded;
    }
}

TEST_P(Narrow, GivesARowWhatItGetsAlone) {
  Stream stream = this->stream();
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16, DType::kI8}) {
    Bed bed(stream);
    constexpr int64_t kOut = 133, kIn = 203, kMax = Project::kFewRows;
    const View x = bed.put(DType::kF32, {kMax, kIn}, random_values(kMax * kIn, 1));
    const Weights w = make_weights(bed, dtype, {kOut, kIn});
    const View alone = bed.empty(DType::kF32, {kMax, kOut});
    for (int64_t row = 0; row < kMax; ++row)
      run(stream,
          Project{.y = alone.rows(row, row + 1), .x = x.rows(row, row + 1), .w = w.view, .scales = w.scales});
    for (int64_t rows = 1; rows <= kMax; ++rows) {
      const View y = bed.empty(DType::kF32, {rows, kOut});
      run(stream, Project{.y = y, .x = x.rows(0, rows), .w = w.view, .scales = w.scales});
      EXPECT_EQ(bed.get(y), bed.get(alone.rows(0, rows))) << name_of(dtype) << " " << rows;
    }
  }
}

TEST_P(Narrow, RoundsEachRowToItsOwn127Steps) {
  Stream stream = this->stream();
  Bed bed(stream);
  const Shape shape{3, 37};
  Values values = random_values(shape.elements(), 4);
  // Row 1 is 1000 times as large as its neighbours, which must keep their precision.
  for (size_t i = 0; i < 37; ++i) values[37 + i] *= 1000;
  for (size_t i = 0; i < 37; ++i) values[74 + i] = 0;
  const View w = bed.put(DType::kF32, shape, values), q = bed.empty(DType::kI8, shape),
             scales = bed.empty(DType::kF32, {3});
  run(stream, QuantizeRows{.q = q, .scales = scales, .w = w});
  for (int64_t row = 0; row < 3; ++row) {
    double most = 0;
    for (int64_t i = 0; i < 37; ++i)
      most = std::max(most, std::abs(values[static_cast<size_t>(row * 37 + i)]));
    const auto scale = static_cast<double>(scales.as<float>()[row]);
    EXPECT_NEAR(scale, most / 127, most * 1e-7);
    for (int64_t i = 0; i < 37; ++i)
      EXPECT_LE(std::abs(q.as<int8_t>()[row * 37 + i] * scale - values[static_cast<size_t>(row * 37 + i)]),
                scale * 0.50001)
          << row << " " << i;
  }
  EXPECT_EQ(scales.as<float>()[2], 0);
}

TEST_P(Narrow, WidensRowsToWhatTheyStandFor) {
  Stream stream = this->stream();
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 17}, Shape{70, 4097}}) {
    Bed bed(stream);
    const Weights narrow = make_weights(bed, DType::kI8, shape);
    const View wide = bed.empty(DType::kF32, shape);
    run(stream, WidenRows{.w = wide, .q = narrow.view, .scales = narrow.scales});
    const Values found = bed.get(wide);
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_EQ(found[i], static_cast<double>(static_cast<float>(narrow.values[i]))) << i;
  }
}

TEST_P(Narrow, LooksUpRowsOfNarrowTables) {
  Stream stream = this->stream();
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    Bed bed(stream);
    Values table = random_values(7 * 5, 1), positions = random_values(4 * 5, 2);
    const View table_view = bed.put(dtype, {7, 5}, table), positions_view = bed.put(dtype, {4, 5}, positions);
    const View ids = bed.put(DType::kI32, {2, 1}, {6, 3}), y = bed.empty(DType::kF32, {2, 1, 5});
    run(stream,
        Embedding{
            .y = y, .ids = ids, .table = table_view, .positions = positions_view, .rows = {.first = 1}});
    Values want;
    for (const auto& [id, position] : {std::pair<size_t, size_t>{6, 1}, {3, 2}})
      for (size_t i = 0; i < 5; ++i) want.push_back(table[id * 5 + i] + positions[position * 5 + i]);
    EXPECT_EQ(disagreement({"y", bed.get(y), want, kTolerance}), "");
  }
}

// A bf16 cache rounds keys and values and nothing else, so the reference gets rounded keys and values.
TEST_P(Narrow, AttendsOverACacheInBf16) {
  Stream stream = this->stream();
  for (const HeadShape& h :
       {HeadShape{21, 2, 2, 3, 24}, HeadShape{40, 1, 3, 1, 64}, HeadShape{9, 1, 1, 2, 100}}) {
    Bed bed(stream);
    Values qkv = random_values(h.qkv_size(), 5), rounded = qkv;
    const Shape packed{h.s, h.b, h.groups, h.r + 2, h.head};
    const View exact = bed.put(DType::kF32, packed, qkv);
    bed.put(DType::kBf16, packed, rounded);
    for (size_t i = 0; i < qkv.size(); ++i)
      if (static_cast<int64_t>(i) / h.head % (h.r + 2) < h.r) rounded[i] = qkv[i];
    const double scale = 1 / std::sqrt(static_cast<double>(h.head));
    const Shape cache{h.b, h.groups, h.s + 2, h.head};
    const View k = bed.empty(DType::kBf16, cache), v = bed.empty(DType::kBf16, cache),
               out = bed.empty(DType::kF32, {h.s, h.b, h.groups * h.r, h.head});
    for (int64_t past = 0, step = 18; past < h.s;
         past += step, step = 1) {  // a prompt, then one token at a time
      const int64_t end = std::min(h.s, past + step);
      run(stream, CachedAttention{.out = out.rows(past, end),
                                  .k_cache = k,
                                  .v_cache = v,
                                  .qkv = exact.rows(past, end),
                                  .past = past,
                                  .scale = static_cast<float>(scale)});
      step = end - past;
    }
    const AttentionResult want = reference_attention(h, rounded, scale, {});
    EXPECT_EQ(disagreement({"out", bed.get(out), want.out, kTolerance * 4}), "");
  }
}

/// Attention of one position within a window: the last row of full attention over the positions in the
/// window.
Values within_window(const HeadShape& h, const Values& qkv, double scale, int64_t position, int64_t window) {
  const int64_t row = h.qkv_size() / h.s, first = std::max<int64_t>(0, position + 1 - window);
  HeadShape seen = h;
  seen.s = position + 1 - first;
  const Values part(qkv.begin() + first * row, qkv.begin() + (position + 1) * row);
  const Values out = reference_attention(seen, part, scale, {}).out;
  return {out.end() - h.out_size() / h.s, out.end()};
}

TEST_P(Narrow, AttendsWithinAWindow) {
  Stream stream = this->stream();
  const HeadShape h{50, 2, 2, 3, 24};
  const double scale = 1 / std::sqrt(static_cast<double>(h.head));
  for (const DType dtype : {DType::kF32, DType::kBf16})
    for (const int64_t window : {1, 7, 30, 49, 50, 60})
      for (const int64_t step : {1, 5, 18, 50}) {
        Bed bed(stream);
        Values qkv = random_values(h.qkv_size(), 5);
        const View exact = bed.put(DType::kF32, {h.s, h.b, h.groups, h.r + 2, h.head}, qkv);
        if (dtype == DType::kBf16) {  // the cache rounds keys and values
          Values rounded = qkv;
          bed.put(dtype, exact.shape, rounded);
          for (size_t i = 0; i < qkv.size(); ++i)
            if (static_cast<int64_t>(i) / h.head % (h.r + 2) >= h.r) qkv[i] = rounded[i];
        }
        const Shape cache{h.b, h.groups, h.s + 2, h.head};
        const View k = bed.empty(dtype, cache), v = bed.empty(dtype, cache),
                   out = bed.empty(DType::kF32, {h.s, h.b, h.groups * h.r, h.head});
        for (int64_t past = 0; past < h.s; past += step)
          run(stream, CachedAttention{.out = out.rows(past, std::min(h.s, past + step)),
                                      .k_cache = k,
                                      .v_cache = v,
                                      .qkv = exact.rows(past, std::min(h.s, past + step)),
                                      .past = past,
                                      .scale = static_cast<float>(scale),
                                      .window = window});
        Values want;
        for (int64_t position = 0; position < h.s; ++position) {
          const Values row = within_window(h, qkv, scale, position, window);
          want.insert(want.end(), row.begin(), row.end());
        }
        EXPECT_EQ(disagreement({"out", bed.get(out), want, kTolerance * 4}), "") << window << " " << step;
      }
}

TEST(Project, RefusesWhatDoesNotFit) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  Bed bed(stream);
  const View y = bed.empty(DType::kF32, {1, 2}), x = bed.empty(DType::kF32, {1, 3}),
             w = bed.empty(DType::kBf16, {2, 3}), narrow = bed.empty(DType::kI8, {2, 3}),
             turned = bed.empty(DType::kBf16, {3, 2}), short_x = bed.empty(DType::kBf16, {1, 3});
  EXPECT_NO_THROW((Project{.y = y, .x = x, .w = w}).check());
  EXPECT_THROW((Project{.y = y, .x = x, .w = turned}).check(), Error);
  EXPECT_THROW((Project{.y = y, .x = x, .w = narrow}).check(), Error);
  EXPECT_THROW((Project{.y = y, .x = short_x, .w = w}).check(), Error);
  EXPECT_THROW((Project{.y = y, .x = x, .w = w, .bias = x}).check(), Error);
}

// ---- the team of threads

TEST(ThreadTeam, RunsEachBlockOnce) {
  for (const int threads : {1, 2, 3, 5}) {
    cpu::ThreadTeam team(threads);
    for (int64_t blocks = 0; blocks < 300; ++blocks) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(blocks));
      team.for_each_block(blocks, [&](int64_t block) { ++runs[static_cast<size_t>(block)]; });
      for (const auto& count : runs) ASSERT_EQ(count, 1) << threads << " " << blocks;
    }
  }
}

TEST(ThreadTeam, TakesMoreBlocksThanATicketHolds) {
  cpu::ThreadTeam team(3);
  std::atomic<int64_t> sum = 0;
  team.for_each_block(70'000, [&](int64_t block) { sum += block; });
  EXPECT_EQ(sum, int64_t{70'000} * 69'999 / 2);
}

TEST(ThreadTeam, WakesAfterARest) {
  cpu::ThreadTeam team(3);
  for (int rest = 0; rest < 5; ++rest) {
    std::atomic<int> runs = 0;
    team.for_each_block(64, [&](int64_t) { ++runs; });
    EXPECT_EQ(runs, 64);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(ThreadTeam, ServesSeveralCallersAtOnce) {
  cpu::ThreadTeam team(3);
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) team.for_each_block(10, [&](int64_t block) { sum += block; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 200 * 45);
}

}  // namespace
}  // namespace megalith::test
