#include "libcore/train/log/flops.h"

namespace megalith {

double model_flops(const ModelConfig& model, int64_t padded_vocab, int64_t samples) {
  constexpr double kPasses = 3, kMatricesOfAPair = 2, kMultiplyAdd = 2;
  const double h = model.hidden, s = model.seq_length, layers = model.layers;
  const double queries = static_cast<double>(model.kv_channels) * model.heads / h;
  const double attention = (1 + static_cast<double>(model.kv_heads()) / model.heads + s / h) * queries;
  const double feed_forward = model.ffn_hidden / h * (model.swiglu ? 1.5 : 1);
  const double head = static_cast<double>(padded_vocab) / (2 * layers * h);
  return kPasses * kMatricesOfAPair * kMultiplyAdd * static_cast<double>(samples) * s * layers * h * h *
         (attention + feed_forward + head);
}

}  // namespace megalith
