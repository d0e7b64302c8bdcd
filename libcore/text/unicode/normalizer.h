#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace megalith {

/// The supported normalizers of Hugging Face tokenizers, in order. An empty text stays empty.
class Normalizer {
 public:
  struct Nfc {};
  struct Prepend {  // puts `text` before the text
    std::string text;
  };
  struct Replace {  // replaces every occurrence, from left to right
    std::string from, to;
  };
  using Step = std::variant<Nfc, Prepend, Replace>;

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
