// bench_ops [FILTER]: time, GFLOP/s and GB/s of each op on the CPU, for the shapes of a GPT-2 124M layer and
// of the demo's small model, in fp32 and bf16. Prints one JSON object a line: the machine, then the ops whose
// line contains FILTER. Flops and bytes are those of Cost.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/figures/quantile.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/tensor/arena.h"

namespace megalith {
namespace {

/// A model's sizes, as far as its ops depend on them.
struct Model {
  const char* name;
  int64_t s, b, h, heads, v;
  int64_t n() const { return s * b; }
};
constexpr Model kModels[] = {{"gpt2-124m", 1024, 4, 768, 12, 50304}, {"demo", 256, 16, 384, 6, 8192}};

/// Tensors with small numbers in them.
class Bench {
 public:
  Bench(Backend& backend, const char* filter)
      : stream_(backend.make_stream()), filter_(filter), noise_(kNoise) {
    uint32_t state = 1;
    for (float& x : noise_)
      x = static_cast<float>((state = state * 1664525 + 1013904223) >> 8) * 0x1p-24f - 0.5f;
  }

  View tensor(DType dtype, Shape shape, double value = 0) {
    View view{nullptr, dtype, shape};
    blocks_.push_back(stream_.backend().allocate(view.bytes()));
    view.data = blocks_.back().data.get();
    if (value != 0 || dtype == DType::kI32) {
      stream_.fill(view, value);
      return view;
    }
    for (int64_t i = 0; i < view.elements(); i += kNoise) {
      const int64_t n = std::min(kNoise, view.elements() - i);
      std::byte* const part = static_cast<std::byte*>(view.data) + static_cast<size_t>(i) * size_of(dtype);
      stream_.copy({part, dtype, {n}}, View{noise_.data(), DType::kF32, {n}});
    }
    return view;
  }

  Stream& stream() { return stream_; }

  template <class Op>
  void time(const std::string& what, const Op& op) {
    const std::string name = concat(Op::kName, " ", what);
    if (name.find(filter_) == std::string::npos) return;
    run(stream_, op);
    std::vector<double> seconds;
    double processor = 1e9;
    for (double total = 0; seconds.size() < 5 || (total < 0.5 && seconds.size() < 200);) {
      const auto start = std::chrono::steady_clock::now();
      const std::clock_t processor_start = std::clock();
      run(stream_, op);
      processor = std::min(processor, static_cast<double>(std::clock() - processor_start) / CLOCKS_PER_SEC);
      seconds.push_back(seconds_since(start));
      total += seconds.back();
    }
    std::sort(seconds.begin(), seconds.end());
    const double median = median_of_few(seconds);
    Json line = Json::object();
    line.set("op", name);
    line.set("ms_min", seconds.front() * 1e3);
    line.set("ms_median", median * 1e3);
    line.set("ms_max", seconds.back() * 1e3);
    line.set("processor_ms_min", processor * 1e3);  // of all threads, which is what counts on a busy machine
    line.set("gflops", op.cost().flops / median * 1e-9);
    line.set("gb_per_s", op.cost().bytes / median * 1e-9);
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }

  void release() { blocks_.clear(); }

 private:
  Stream stream_;
  static constexpr int64_t kNoise = 99991;
  std::string filter_;
  std::vector<float> noise_;
  std::vector<Memory> blocks_;
};

/// y = x w^T + b, dx = dy w, dw += dy^T x.
void linear(Bench& bench, const std::string& what, DType t, int64_t n, int64_t in, int64_t out) {
  const View x = bench.tensor(t, {n, in}), w = bench.tensor(t, {out, in}), y = bench.tensor(t, {n, out});
  const View bias = bench.tensor(t, {out}), dw = bench.tensor(DType::kF32, {out, in});
  bench.time(what + " forward", Gemm{.c = y, .a = x, .b = w, .bias = bias, .trans_b = true});
  bench.time(what + " dgrad", Gemm{.c = x, .a = y, .b = w});
  bench.time(what + " wgrad", Gemm{.c = dw, .a = y, .b = x, .trans_a = true, .accumulate = true});
  bench.time(what, BiasGrad{.dbias = bench.tensor(DType::kF32, {out}), .dy = y});
  bench.release();
}

void attention(Bench& bench, const std::string& what, DType t, const Model& m) {
  const int64_t head = m.h / m.heads;
  const View qkv = bench.tensor(t, {m.s, m.b, m.heads, 3, head}),
             dqkv = bench.tensor(t, {m.s, m.b, m.heads, 3, head});
  const View out = bench.tensor(t, {m.s, m.b, m.heads, head}),
             dout = bench.tensor(t, {m.s, m.b, m.heads, head});
  const View lse = bench.tensor(DType::kF32, {m.b, m.heads, m.s});
  for (const float p : {0.0f, 0.1f}) {
    const DropoutKey key{.p = p, .samples = bench.tensor(DType::kI64, {m.b}, 1)};
    const std::string name = what + (p > 0 ? " dropout" : "");
    bench.time(name, Attention{.out = out, .qkv = qkv, .scale = 0.125f, .lse = lse, .dropout = key});
    bench.time(
        name,
        AttentionGrad{
            .dqkv = dqkv, .dout = dout, .out = out, .qkv = qkv, .lse = lse, .scale = 0.125f, .dropout = key});
  }
  bench.release();
}

void row_wise(Bench& bench, const std::string& what, DType t, const Model& m) {
  const Shape rows{m.s, m.b, m.h}, wide{m.n(), 4 * m.h};
  const View x = bench.tensor(t, rows), y = bench.tensor(t, rows), r = bench.tensor(t, rows),
             s = bench.tensor(t, rows);
  const View w = bench.tensor(t, {m.h}), b = bench.tensor(t, {m.h});
  const View dw = bench.tensor(DType::kF32, {m.h}), db = bench.tensor(DType::kF32, {m.h});
  const View mean = bench.tensor(DType::kF32, {m.n()}), rstd = bench.tensor(DType::kF32, {m.n()}, 1);
  bench.time(what,
             LayerNorm{.y = y, .x = x, .w = w, .b = b, .mean = mean, .rstd = rstd, .residual = r, .sum = s});
  bench.time(what,
             LayerNormGrad{
                 .dx = s, .dw = dw, .db = db, .dy = y, .x = x, .w = w, .mean = mean, .rstd = rstd, .add = r});
  bench.time(what, RmsNorm{.y = y, .x = x, .w = w, .rstd = rstd, .residual = r, .sum = s});
  bench.time(what, RmsNormGrad{.dx = s, .dw = dw, .dy = y, .x = x, .w = w, .rstd = rstd, .add = r});
  bench.time(
      what,
      Dropout{
          .y = y, .x = x, .key = {.p = 0.1f, .samples = bench.tensor(DType::kI64, {m.b}, 1)}, .residual = r});
  const View f1 = bench.tensor(t, wide), f2 = bench.tensor(t, wide), f3 = bench.tensor(t, wide);
  bench.time(what + " tanh", Activate{.y = f2, .x = f1});
  bench.time(what + " erf", Activate{.y = f2, .x = f1, .function = ActivationFunction::kGelu});
  bench.time(what + " tanh", ActivateGrad{.dx = f3, .dy = f2, .x = f1});
  bench.time(what + " erf", ActivateGrad{.dx = f3, .dy = f2, .x = f1, .function = ActivationFunction::kGelu});
  const View half = bench.tensor(t, {m.n(), 2 * m.h});
  bench.time(what, SwiGlu{.y = half, .x = f1});
  bench.time(what, SwiGluGrad{.dx = f3, .dy = half, .x = f1});
  const View table = bench.tensor(t, {m.v, m.h}), ids = bench.tensor(DType::kI32, {m.s, m.b}, 5);
  bench.time(what, Embedding{.y = y, .ids = ids, .table = table});
  bench.time(
      what,
      EmbeddingGrad{.dtable = bench.tensor(DType::kF32, {m.v, m.h}), .dpositions = {}, .dy = y, .ids = ids});
  bench.release();
}

void loss(Bench& bench, const std::string& what, DType t, const Model& m) {
  constexpr int64_t kRows = 512;  // the head works in chunks
  const View logits = bench.tensor(t, {kRows, m.v}), max = bench.tensor(DType::kF32, {kRows});
  const View sum = bench.tensor(DType::kF32, {kRows}, 1), losses = bench.tensor(DType::kF32, {kRows});
  const View targets = bench.tensor(DType::kI32, {kRows}, 3);
  bench.time(what, SoftmaxStats{.max = max, .sum_exp = sum, .logits = logits, .columns = m.v});
  bench.time(
      what,
      CrossEntropy{
          .loss = losses, .logits = logits, .max = max, .sum_exp = sum, .targets = targets, .columns = m.v});
  bench.release();
}

void optimizer(Bench& bench, const std::string& what, DType t, const Model& m) {
  const Shape flat{12 * m.h * m.h * 4};  // as many parameters as four layers have
  const View p = bench.tensor(DType::kF32, flat), g = bench.tensor(DType::kF32, flat);
  const View first = bench.tensor(DType::kF32, flat), second = bench.tensor(DType::kF32, flat, 1);
  const View scalars = bench.tensor(DType::kF64, {StepScalar::kCount}, 0.5);
  bench.stream().fill(step_scalar(scalars, StepScalar::kSkip), 0);
  AdamW op{.master = p,
           .m = first,
           .v = second,
           .grad = g,
           .scalars = scalars,
           .beta1 = 0.9,
           .beta2 = 0.95,
           .eps = 1e-8,
           .weight_decay = 0.1};
  if (t == DType::kBf16) op.value = bench.tensor(t, flat);
  bench.time(what, op);
  bench.time(what, SumSquares{.out = bench.tensor(DType::kF64, {1}, 1), .x = g});
  bench.release();
}

/// Ops of generation, which read all weights for only 1 to 8 rows: the head's product, and attention of one
/// new position over a full cache.
void generation(Bench& bench, const std::string& what, DType t, const Model& m) {
  for (const int64_t n : {1, 2, 4, 8}) {
    const View x = bench.tensor(t, {n, m.h}), w = bench.tensor(t, {m.v, m.h}), y = bench.tensor(t, {n, m.v});
    bench.time(concat(what, " rows ", n), Gemm{.c = y, .a = x, .b = w, .trans_b = true});
  }
  const int64_t head = m.h / m.heads;
  const View cache = bench.tensor(t, {1, m.heads, m.s, head});
  bench.time(what, CachedAttention{.out = bench.tensor(t, {1, 1, m.heads, head}),
                                   .k_cache = cache,
                                   .v_cache = bench.tensor(t, {1, m.heads, m.s, head}),
                                   .qkv = bench.tensor(t, {1, 1, m.heads, 3, head}),
                                   .past = m.s - 1,
                                   .scale = 0.125f});
  bench.release();
}

std::string processor() {
  for (const std::string& line : split(read_file("/proc/cpuinfo"), '\n'))
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

int bench_ops(const char* filter) {
  const char* const isa = std::getenv("MEGALITH_ISA");
  const char* const threads = std::getenv("OMP_NUM_THREADS");
  Json machine = Json::object();
  machine.set("processor", processor());
  machine.set("processors", static_cast<int64_t>(std::thread::hardware_concurrency()));
  machine.set("OMP_NUM_THREADS", threads == nullptr ? "" : threads);
  machine.set("MEGALITH_ISA", isa == nullptr ? "" : isa);
  std::printf("%s\n", machine.dump().c_str());
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Bench bench(*backend, filter);
  for (const Model& m : kModels)
    for (const DType t : {DType::kF32, DType::kBf16}) {
      const std::string what = concat(m.name, " ", name_of(t));
      linear(bench, what + " qkv", t, m.n(), m.h, 3 * m.h);
      linear(bench, what + " fc1", t, m.n(), m.h, 4 * m.h);
      linear(bench, what + " fc2", t, m.n(), 4 * m.h, m.h);
      linear(bench, what + " head", t, 512, m.h, m.v);
      attention(bench, what, t, m);
      row_wise(bench, what, t, m);
      loss(bench, what, t, m);
      optimizer(bench, what, t, m);
      generation(bench, what, t, m);
    }
  return 0;
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  try {
    return megalith::bench_ops(argc > 1 ? argv[1] : "");
  } catch (const megalith::Error& error) {
    std::fprintf(stderr, "bench_ops: error: %s\n", error.what());
    return megalith::exit_code(error.kind());
  }
}
