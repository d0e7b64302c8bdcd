#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

/// What a BertNormalizer of Hugging Face tokenizers does, in this order.
struct BertRules {
  bool clean = true;             // removes controls, and makes white space U+0020
  bool space_ideographs = true;  // puts blanks around each ideograph
  bool strip_accents = true;     // decomposes (NFD), and removes nonspacing marks
  bool lower = true;
};

/// Normalizes texts by BertRules.
class BertNormal {
 public:
  explicit BertNormal(const BertRules& rules);
  const BertRules& rules() const { return rules_; }

  /// Appends what `utf8` (valid) becomes.
  void append(std::string_view utf8, std::string& out) const;

 private:
  static constexpr int8_t kRemoved = -1;
  void add_to_run(uint32_t c, std::string_view character, std::string& run) const;
  void append_run(const std::string& run, std::string& out) const;

  BertRules rules_;
  std::array<int8_t, 128> ascii_;  // what each ASCII character becomes
};

}  // namespace megalith
