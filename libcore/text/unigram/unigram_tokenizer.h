#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "libcore/text/unigram/unigram_model.h"
#include "libcore/text/worker_tokenizer.h"

namespace megalith {

/// A unigram model: cuts prepared texts into tokens (see UnigramRules). Does not look for added tokens.
class UnigramTokenizer : public WorkerTokenizer {
 public:
  explicit UnigramTokenizer(UnigramModel model);
  /// The tables that this tokenizer uses.
  const UnigramTables& tables() const { return tables_; }

  int vocab_size() const override { return static_cast<int>(tables_.tokens.size()); }
  std::string hash() const override { return tables_.hash; }

 protected:
  std::unique_ptr<TextWorker> make_worker() const override;
  std::string_view token(size_t id) const override { return tables_.tokens[id]; }

 private:
  UnigramRules rules_;
  UnigramTables tables_;
};

}  // namespace megalith
