#include "libcore/text/unigram/unigram_tokenizer.h"

#include "libcore/text/unigram/unigram_worker.h"

namespace megalith {

UnigramTokenizer::UnigramTokenizer(UnigramModel model)
    : WorkerTokenizer(model.name, model.eod),
      rules_(model.rules),
      tables_(model.tables ? std::move(*model.tables) : make_unigram_tables(model)) {}

std::unique_ptr<TextWorker> UnigramTokenizer::make_worker() const {
  return make_unigram_worker(tables_, rules_);
}

}  // namespace megalith
