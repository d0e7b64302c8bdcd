#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/core_tokenizer.h"
#include "libcore/text/idle_pool.h"
#include "libcore/text/unigram/unigram_model.h"
#include "libcore/text/unigram/unigram_worker.h"

namespace megalith {

/// A unigram model: cuts prepared texts into tokens (see UnigramRules). Does not look for added tokens.
class UnigramTokenizer : public CoreTokenizer {
 public:
  explicit UnigramTokenizer(UnigramModel model);
  /// The tables that this tokenizer uses.
  const UnigramTables& tables() const { return tables_; }

  int vocab_size() const override { return static_cast<int>(tables_.tokens.size()); }
  int eod() const override;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override;
  void encode_to(std::string_view text, IdBuffer& out) const override;
  void encode_in_parts(std::string_view text, const TakeIds& take) const override;
  std::unique_ptr<Stream> stream(Takers take) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  std::string name() const override { return name_; }
  std::string hash() const override { return tables_.hash; }

 private:
  using Workers = IdlePool<UnigramWorker>;
  class UnigramStream;
  Workers::Loan worker() const;

  std::string name_;
  UnigramRules rules_;
  UnigramTables tables_;
  int32_t eod_;
  mutable Workers workers_;
};

}  // namespace megalith
