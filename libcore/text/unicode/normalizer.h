#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace megalith {

/// The normalizers of Hugging Face tokenizers that are done here, in order. A text without characters stays
/// so.
class Normalizer {
 public:
  struct Nfc {};
  struct Prepend {  // before the text
    std::string text;
  };
  struct Replace {  // every occurrence, from left to right
    std::string from, to;
  };
  using Step = std::variant<Nfc, Prepend, Replace>;

  Normalizer() = default;
  explicit Normalizer(std::vector<Step> steps) : steps_(std::move(steps)) {}

  bool empty() const { return steps_.empty(); }
  const std::vector<Step>& steps() const { return steps_; }

  /// Room for the text between steps; one for each thread.
  struct Scratch {
    std::string text, next;
  };
  /// The normalized text: `utf8` itself, or a view of `scratch`, good until its next use.
  std::string_view apply(std::string_view utf8, Scratch& scratch) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace megalith
