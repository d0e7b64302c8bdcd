#pragma once

#include <memory>

#include "libcore/text/unigram/unigram_model.h"
#include "libcore/text/worker_tokenizer.h"

namespace megalith {

/// A worker that keeps references to both.
std::unique_ptr<TextWorker> make_text_worker(const UnigramTables& tables, const UnigramRules& rules);

}  // namespace megalith
