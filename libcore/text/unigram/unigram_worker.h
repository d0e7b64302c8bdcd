#pragma once

#include <memory>
#include <string_view>

#include "libcore/text/tokenizer.h"
#include "libcore/text/unigram/unigram_model.h"

namespace megalith {

/// Encodes texts with a unigram model. For one thread at a time.
class UnigramWorker {
 public:
  virtual ~UnigramWorker() = default;
  /// Keeps references to both.
  static std::unique_ptr<UnigramWorker> make(const UnigramTables& tables, const UnigramRules& rules);

  using TakeIds = Tokenizer::TakeIds;
  /// Passes the ids of a text to `take`, in order.
  virtual void encode(std::string_view text, const TakeIds& take) = 0;

  /// The same for a text that arrives in parts, which must consist of whole characters. Keeps a reference to
  /// `take`.
  virtual void begin(const TakeIds& take) = 0;
  virtual void add(std::string_view part) = 0;
  virtual void finish() = 0;

  /// Frees memory that an unusually long text took.
  virtual void trim() = 0;
};

}  // namespace megalith
