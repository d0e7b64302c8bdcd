#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/plugins/library_folders.h"

namespace megalith {

/// A regular expression that the library Oniguruma matches. It is slower than a CompiledPattern, but may be
/// any expression that the library knows. Thread-safe.
class OnigurumaPattern {
 public:
  virtual ~OnigurumaPattern() = default;
  /// Takes where a match begins and ends, in bytes.
  using TakeMatch = std::function<void(size_t begin, size_t end)>;
  /// Passes all matches in `utf8` (valid) to `take`, in order; each is searched for from the end of the one
  /// before. A match may be empty, but not where the match before it ends. Throws kData if `utf8` has 2 GiB
  /// or more, or if the library gives up, as it does after 10 million steps back in one match.
  virtual void each_match(std::string_view utf8, const TakeMatch& take) const = 0;
};

/// Opens the plugin for Oniguruma in one of `folders`, and compiles an expression. Characters have the
/// properties of char_property(), whatever release the library is of. Throws UnsupportedPattern if the
/// library refuses the expression, and kDevice if there is no plugin: it is built where the library is.
std::unique_ptr<OnigurumaPattern> oniguruma_pattern(
    std::string_view regex, const std::vector<std::string>& folders = own_library_folders());

/// An expression that means the same, with the ranges of char_property() in place of \p{...}, \d and \w, and
/// of \b and \B. Expressions whose options change what these mean, such as (?x) or (?W), are left as they
/// are. Throws UnsupportedPattern if the result has more than 16 MiB.
std::string with_own_properties(std::string_view regex);

}  // namespace megalith
