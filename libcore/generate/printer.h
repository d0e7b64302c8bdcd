#pragma once

#include <map>
#include <string>
#include <vector>

#include "libcore/generate/run_generate.h"
#include "libcore/generate/text_stream.h"

namespace megalith {

struct Prompt {
  std::string text;  // the prompt's text, for --echo and the member "prompt" of --json
  std::vector<int32_t> ids;

  template <class V>
  void members(V&& visit) {  // see parallel/exchange.h
    visit(text, ids);
  }
};

/// Writes continuations to stdout in the order of their prompts. The first one that is not finished is
/// written while it is generated; the text of later ones waits.
class Printer {
 public:
  struct Style {
    bool json = false, echo = true;
    size_t continuations = 1;  // continuations of each prompt
    std::vector<std::string> stop;
  };
  /// Prompts may be added to the vector later, but each before its sequences.
  Printer(const Tokenizer&, const std::vector<Prompt>&, Style);

  /// Adds a token to a sequence. Returns whether the sequence should continue.
  bool token(size_t sequence, int32_t token);
  /// Ends a sequence. Returns its text.
  std::string end(size_t sequence, const Generated&);

 private:
  struct Text {
    TextStream stream;
    std::string whole;   // all text so far
    size_t written = 0;  // bytes of `whole` that were written
    bool begun = false, ended = false;
    std::string line;  // the JSON object, with --json
  };
  Text& text(size_t sequence);
  const Prompt& prompt(size_t sequence) const { return prompts_[sequence / style_.continuations]; }
  void write();

  const Tokenizer& tokenizer_;
  const std::vector<Prompt>& prompts_;
  Style style_;
  std::map<size_t, Text> texts_;  // texts of sequences that have begun but are not written completely
  size_t next_ = 0;               // the sequence that is being written
};

}  // namespace megalith
