#include "libcore/data/samples/documents.h"

#include <algorithm>

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

bool ends_documents(const IndexedDataset& data, int32_t eod) {
  constexpr int64_t kLooked = 100;
  bool empty = true;
  for (int64_t document = 0; document < std::min(data.documents(), kLooked); ++document) {
    const int64_t end = data.document_begin(document + 1);
    if (end == data.document_begin(document) || data.sequence_length(end - 1) == 0) continue;
    const TokenSpan last = data.sequence(end - 1, data.sequence_length(end - 1) - 1);
    if (last[0] == eod) return true;
    empty = false;
  }
  return empty;
}

}  // namespace megalith
