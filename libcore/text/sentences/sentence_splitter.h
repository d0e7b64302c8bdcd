#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "libcore/text/sentences/punkt_parameters.h"

namespace megalith {

/// Cuts text into sentences exactly as NLTK 3.10's PunktSentenceTokenizer does with the same parameters; the
/// rules are Kiss and Strunk's (2006), their details NLTK's. Immutable: one may serve several threads.
class SentenceSplitter {
 public:
  /// What follows a sentence: dropped when it is blanks, or kept with it, which is what Megatron's
  /// --keep-newlines does (by another pattern for what may end a sentence, so the cuts may differ as well).
  enum class Blanks { kDrop, kKeep };
  SentenceSplitter(PunktParameters parameters, Blanks blanks);

  using TakeSentence = std::function<void(std::string_view)>;
  /// Hands over the sentences of `utf8` (valid) in order; none is empty. They lie in it. Needs time and
  /// memory linear in the text, and no memory for the sentences.
  void split(std::string_view utf8, const TakeSentence& take) const;
  /// The same in parts of a million characters, each cut alone, because Megatron's preprocess_data.py does
  /// so.
  void split_in_parts(std::string_view utf8, const TakeSentence& take) const;

  const PunktParameters& parameters() const { return parameters_; }

 private:
  PunktParameters parameters_;
  Blanks blanks_;
};

}  // namespace megalith
