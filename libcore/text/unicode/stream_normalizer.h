#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "libcore/text/unicode/normalizer.h"

namespace megalith {

/// A normalizer for texts that are normalized part by part, so that a long one needs little memory. Most
/// steps change no more than single characters or what is between two words; parts then end in front of a
/// blank between two ASCII letters or digits.
class StreamNormalizer {
 public:
  /// Nothing if the result of a part may depend on the rest of the text.
  static std::optional<StreamNormalizer> of(const Normalizer& whole);

  /// A part of `utf8` (valid) from its beginning, of about `bytes` bytes; all of it if it must not be cut.
  std::string_view next(std::string_view utf8, size_t bytes) const;
  /// The normalizer for a part, by whether it begins the text and whether it ends it.
  const Normalizer& normalizer(bool begins, bool ends) const {
    return begins ? (ends ? whole_ : first_) : ends ? last_ : middle_;
  }

 private:
  StreamNormalizer() = default;
  void add(const Normalizer::Step& step);
  bool is_plain(char c) const;

  Normalizer whole_, first_, middle_, last_;
  bool only_between_words_ = false;
  std::vector<std::shared_ptr<const Charsmap>> charsmaps_;
};

}  // namespace megalith
