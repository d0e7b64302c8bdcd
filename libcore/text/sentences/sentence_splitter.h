#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "libcore/text/sentences/punkt_parameters.h"

namespace megalith {

/// Splits text into sentences exactly as NLTK 3.10's PunktSentenceTokenizer does with the same parameters.
/// The rules are Kiss and Strunk's (2006), their details NLTK's. Immutable: several threads may share one.
class SentenceSplitter {
 public:
  /// What happens to the blanks after a sentence. kDrop: they are dropped. kKeep: they stay with the
  /// sentence, as with Megatron's --keep-newlines. That option also finds the ends of sentences by another
  /// pattern, so the cuts may differ as well.
  enum class Blanks { kDrop, kKeep };
  SentenceSplitter(PunktParameters parameters, Blanks blanks);

  using TakeSentence = std::function<void(std::string_view)>;
  /// Passes the sentences of `utf8` (valid) to `take` in order; none is empty. They are views of `utf8`.
  /// Needs time and memory linear in the text, and no memory for the sentences.
  void split(std::string_view utf8, const TakeSentence& take) const;
  /// Like split(), but in parts of a million characters, each split on its own, as Megatron's
  /// preprocess_data.py does.
  void split_in_parts(std::string_view utf8, const TakeSentence& take) const;

  const PunktParameters& parameters() const { return parameters_; }

 private:
  PunktParameters parameters_;
  Blanks blanks_;
};

}  // namespace megalith
