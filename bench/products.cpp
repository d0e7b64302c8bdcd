// bench_products fp32|bf16 THREADS ROWS INxOUT…: the best rate of oneDNN's products, in GFLOP/s, of a linear
// layer with so many rows, inputs and outputs: forward, and the gradients of its input and of its weights.
// One JSON object for each. bench/step.py divides by the highest of them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/json/json.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/tensor/arena.h"

namespace megalith {
namespace {

/// The shortest of the times within about half a second, without the first, which makes the kernel.
double shortest(Stream& stream, const Gemm& product) {
  run(stream, product);
  double best = 1e9;
  int times = 0;
  for (double total = 0; times < 4 || total < 0.5; ++times) {
    const auto start = std::chrono::steady_clock::now();
    run(stream, product);
    const double seconds = seconds_since(start);
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

void print(const std::string& name, Stream& stream, const Gemm& product) {
  Json line = Json::object();
  line.set("product", name);
  line.set("gflops", product.cost().flops / shortest(stream, product) * 1e-9);
  std::printf("%s\n", line.dump().c_str());
}

void linear(Stream& stream, DType dtype, int64_t rows, int64_t in, int64_t out) {
  const auto bytes = static_cast<size_t>(2 * (rows * in + rows * out + in * out)) * sizeof(float) + 4096;
  Arena arena("products", stream.backend().allocate(bytes));
  const View x = arena.make(dtype, {rows, in}, "x"), w = arena.make(dtype, {out, in}, "w"),
             y = arena.make(dtype, {rows, out}, "y"), dw = arena.make(DType::kF32, {out, in}, "dw");
  for (const View& view : {x, w, y, dw}) stream.fill(view, 0.5);
  const std::string name = concat(rows, " rows, ", in, " to ", out);
  print(name + " forward", stream, {.c = y, .a = x, .b = w, .trans_b = true});
  print(name + " dgrad", stream, {.c = x, .a = y, .b = w});
  print(name + " wgrad", stream, {.c = dw, .a = y, .b = x, .trans_a = true, .accumulate = true});
}

int64_t number(const std::string& text) {
  const auto value = parse_int(text);
  if (!value || *value < 1) fail(ErrorKind::kUsage, quote(text), ": wanted a whole number above 0");
  return *value;
}

int bench_products(int argc, char** argv) {
  const std::string_view type = argc < 5 ? "" : argv[1];
  if (type != "fp32" && type != "bf16")
    fail(ErrorKind::kUsage, "usage: bench_products fp32|bf16 THREADS ROWS INxOUT...");
  const DType dtype = type == "bf16" ? DType::kBf16 : DType::kF32;
  set_cpu_threads(static_cast<int>(number(argv[2])));
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  for (int i = 4; i < argc; ++i) {
    const std::vector<std::string> sizes = split(argv[i], 'x');
    if (sizes.size() != 2) fail(ErrorKind::kUsage, quote(argv[i]), ": wanted INxOUT, such as 768x3072");
    linear(stream, dtype, number(argv[3]), number(sizes[0]), number(sizes[1]));
  }
  return 0;
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  try {
    return megalith::bench_products(argc, argv);
  } catch (const megalith::Error& error) {
    std::fprintf(stderr, "bench_products: error: %s\n", error.what());
    return megalith::exit_code(error.kind());
  }
}
