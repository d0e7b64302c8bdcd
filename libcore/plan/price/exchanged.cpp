#include "libcore/plan/price/exchanged.h"

namespace megalith {

ExchangedTensors exchanged_tensors(const PlanProblem& p, const LayerShape& s) {
  const ModelShape& m = p.model;
  const double positions = static_cast<double>(m.seq_length) * s.micro_batch;
  const double width = m.latent_attention ? m.query_width() / s.tensor : local_key_width(m, s.tensor);
  constexpr double kKeysAndValues = 2;
  ExchangedTensors out{.hidden = p.element() * positions / s.context * m.hidden,
                       .keys_values = kKeysAndValues * p.element() * positions * width};
  out.message = s.sequence ? out.hidden / s.tensor : out.hidden;
  return out;
}

TensorCalls& TensorCalls::operator+=(const TensorCalls& other) {
  sums += other.sums;
  gathers += other.gathers;
  scatters += other.scatters;
  again += other.again;
  return *this;
}

TensorCalls operator*(double times, const TensorCalls& calls) {
  return {times * calls.sums, times * calls.gathers, times * calls.scatters, times * calls.again};
}

TensorCalls layer_calls(bool sequence, double blocks, bool forward) {
  if (!sequence) return {.sums = blocks};
  const double again = forward ? 0 : blocks;
  return {.gathers = blocks + again, .scatters = blocks, .again = again};
}

TensorCalls end_calls(bool sequence) {
  return sequence ? TensorCalls{.gathers = 1, .scatters = 1} : TensorCalls{.sums = 1};
}

}  // namespace megalith
