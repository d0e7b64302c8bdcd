#include "libcore/plan/price/adapter_price.h"

namespace megalith {
namespace {

// "Count" and "belief": as in layer_price.cpp.

/// Kernels that the host starts for an adapter in a forward pass: two products, dropout or a cast, the scale,
/// the sum. Belief.
constexpr double kAdapterKernels = 5;
constexpr double kScaleBytes = 4;  // of the scale of each row of a matrix in 8 bits (ops: QuantizeRows)

struct AdapterPricer {
  const KernelRates& r;
  const LayerShape& s;
  const PlanProblem& p = r.p;
  const ModelShape& m = p.model;
  double n = static_cast<double>(m.seq_length) * s.micro_batch / s.context;  // tokens
  double rank = p.tuning.lora_rank;

  /// The sum of one(out, in) over the linear layers that have an adapter.
  double sum(const auto& one) const {
    double all = 0;
    for (const AdaptedLinear& linear : adapted_linears(m, s.tensor))
      if (linear.times > 0) all += linear.times * one(linear.out, linear.in);
    return all;
  }
  double product(double rows, double columns, double depth) const {
    return r.product(rows, columns, depth, r.peak);
  }
  /// Adding a product to a tensor reads the tensor, too.
  double added(double width) const { return n * width * r.e / r.bandwidth; }

  double forward() const {
    return sum(
        [&](double out, double in) { return product(n, rank, in) + product(n, out, rank) + added(out); });
  }
  /// The gradients of both matrices, of what is between them, and of the input.
  double backward() const {
    return sum([&](double out, double in) {
      return product(n, rank, out) + product(out, rank, n) + product(rank, in, n) + product(n, in, rank) +
             added(in);
    });
  }
  /// Each pass reads the matrices in 8 bits and writes them in the width of activations.
  double decoded() const {
    return p.tuning.eight_bits ? r.stream(count_linears(m, s.tensor).elements * (1 + r.e)) : 0;
  }

  AdapterPrice price() const {
    AdapterPrice out{.forward = forward() + decoded(), .backward = backward() + decoded()};
    const double adapters = sum([](double, double) { return 1; });
    out.launches = kAdapterKernels * adapters;
    out.kept = n * rank * r.e * adapters;
    return out;
  }
};

}  // namespace

AdapterPrice price_adapters(const KernelRates& rates, const LayerShape& shape) {
  return rates.p.tuning.adapts() ? AdapterPricer{rates, shape}.price() : AdapterPrice{};
}

ParameterCount trained_parameters(const PlanProblem& p, const ParameterCount& all, int tensor) {
  if (!p.tuning.adapts()) return all;
  return {.block = adapter_parameters(p.model, tensor, p.tuning.lora_rank)};
}

ParameterCount weight_bytes(const PlanProblem& p, const ParameterCount& all, int tensor) {
  // 8- and 4-bit products keep their weights in 8 bits in both orders, which together take as many bytes as
  // 16 bits.
  const double each = p.element();
  ParameterCount out = all;
  out *= each;
  if (!p.tuning.adapts()) return out;
  out.block += each * adapter_parameters(p.model, tensor, p.tuning.lora_rank);
  if (!p.tuning.eight_bits) return out;
  const LinearCount linears = count_linears(p.model, tensor);
  out.block += kScaleBytes * linears.rows - (each - 1) * linears.elements;
  return out;
}

}  // namespace megalith
