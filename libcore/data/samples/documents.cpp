#include "libcore/data/samples/documents.h"

namespace megalith {

void mark_documents(const SampleView& out, int32_t eod, bool mask_loss) {
  int32_t start = 0;
  for (size_t row = 0; row < out.tokens.size(); ++row) {
    if (!out.starts.empty()) out.starts[row] = start;
    if (out.tokens[row] != eod) continue;
    start = static_cast<int32_t>(row) + 1;
    if (mask_loss) out.loss_mask[row] = 0;
  }
}

}  // namespace megalith
