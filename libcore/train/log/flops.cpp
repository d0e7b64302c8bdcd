#include "libcore/train/log/flops.h"

namespace megalith {

double model_flops(const ModelConfig& m, int64_t padded_vocab, int64_t samples) {
  constexpr double kPasses = 3, kMatricesOfAPair = 2, kMultiplyAdd = 2;
  const double h = m.hidden, s = m.seq_length, layers = m.layers;
  const double queries = static_cast<double>(m.kv_channels) * m.heads / h;
  const double attention = (1 + static_cast<double>(m.kv_heads()) / m.heads + s / h) * queries;
  const double feed_forward = m.ffn_hidden / h * (m.swiglu ? 1.5 : 1);
  const double head = static_cast<double>(padded_vocab) / (2 * layers * h);
  return kPasses * kMatricesOfAPair * kMultiplyAdd * static_cast<double>(samples) * s * layers * h * h *
         (attention + feed_forward + head);
}

}  // namespace megalith
