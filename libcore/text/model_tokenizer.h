#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "libcore/text/worker_tokenizer.h"

namespace megalith {

/// The tokenizer of a model with `rules` and perhaps `tables`. For its kind of model there are
/// make_tables(model) and make_text_worker(tables, rules); the worker may keep references to both.
template <class Model>
class ModelTokenizer : public WorkerTokenizer {
 public:
  using Rules = decltype(Model::rules);
  using Tables = typename decltype(Model::tables)::value_type;

  explicit ModelTokenizer(Model model)
      : WorkerTokenizer(model.name, model.eod),
        rules_(model.rules),
        tables_(model.tables ? std::move(*model.tables) : make_tables(model)) {}
  /// The tables that this tokenizer uses.
  const Tables& tables() const { return tables_; }

  int vocab_size() const override { return static_cast<int>(tables_.tokens.size()); }
  std::string hash() const override { return tables_.hash; }

 protected:
  std::unique_ptr<TextWorker> make_worker() const override { return make_text_worker(tables_, rules_); }
  std::string_view token(size_t id) const override { return tables_.tokens[id]; }

 private:
  Rules rules_;
  Tables tables_;
};

}  // namespace megalith
