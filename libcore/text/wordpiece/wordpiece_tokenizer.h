#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "libcore/text/wordpiece/wordpiece_model.h"
#include "libcore/text/worker_tokenizer.h"

namespace megalith {

/// A WordPiece model: cuts prepared texts into tokens (see WordPieceRules). Does not look for added tokens.
class WordPieceTokenizer : public WorkerTokenizer {
 public:
  explicit WordPieceTokenizer(WordPieceModel model);
  /// The tables that this tokenizer uses.
  const WordPieceTables& tables() const { return tables_; }

  int vocab_size() const override { return static_cast<int>(tables_.tokens.size()); }
  std::string hash() const override { return tables_.hash; }

 protected:
  std::unique_ptr<TextWorker> make_worker() const override;
  std::string_view token(size_t id) const override { return tables_.tokens[id]; }

 private:
  WordPieceRules rules_;
  WordPieceTables tables_;
};

}  // namespace megalith
