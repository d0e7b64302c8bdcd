#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "libcore/text/unicode/bert_normal.h"
#include "libcore/text/unicode/charsmap.h"
#include "libcore/text/unicode/forms.h"

namespace megalith {

/// The supported normalizers of Hugging Face tokenizers, in order. An empty text stays empty.
class Normalizer {
 public:
  struct Nfc {};
  struct Nfkc {};
  struct Decompose {
    Decomposition form;
  };
  struct StripAccents {};
  struct Lowercase {};
  struct Nmt {};    // removes controls, and makes odd blanks U+0020
  struct Prepend {  // puts `text` before the text
    std::string text;
  };
  struct Replace {  // replaces every occurrence, from left to right
    std::string from, to;
  };
  struct ReplaceMatches {  // replaces every match of a regular expression, of which some may be empty
    std::string regex, to;
    /// Passes where each match in a text begins and ends, in order.
    std::function<void(std::string_view utf8, const std::function<void(size_t, size_t)>& take)> each_match;
  };
  struct JoinBlanks {  // replaces each run of two blanks and more
    std::string to;
  };
  struct Strip {  // removes white space at the ends
    bool left, right;
  };
  /// SentencePiece's charsmap. The first rule that fits the beginning of a grapheme cluster of up to five
  /// bytes replaces the cluster. Characters of other clusters are replaced one by one.
  struct Precompiled {
    std::shared_ptr<const Charsmap> charsmap;
    std::string identity;  // tells charsmaps apart
  };
  using Step = std::variant<Nfc, Nfkc, Decompose, StripAccents, Lowercase, Nmt, Prepend, Replace,
                            ReplaceMatches, JoinBlanks, Strip, Precompiled, BertNormal>;

  Normalizer() = default;
  explicit Normalizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }
  const std::vector<Step>& steps() const { return steps_; }

  /// Memory for the text between steps; each thread needs its own.
  struct Scratch {
    std::string text, next;
  };
  /// The normalized text: `utf8` itself, or a view of `scratch` that is valid until its next use.
  std::string_view apply(std::string_view utf8, Scratch& scratch) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace megalith
