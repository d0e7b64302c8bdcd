#include "libcore/text/wordpiece/wordpiece_tokenizer.h"

#include "libcore/text/wordpiece/wordpiece_worker.h"

namespace megalith {

WordPieceTokenizer::WordPieceTokenizer(WordPieceModel model)
    : WorkerTokenizer(model.name, model.eod),
      rules_(model.rules),
      tables_(model.tables ? std::move(*model.tables) : make_wordpiece_tables(model)) {}

std::unique_ptr<TextWorker> WordPieceTokenizer::make_worker() const {
  return std::make_unique<WordPieceWorker>(tables_, rules_);
}

}  // namespace megalith
