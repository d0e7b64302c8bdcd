#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace megalith::jinja {

/// A word, number, string or operator inside a tag, or a whole piece of text.
struct TemplateToken {
  enum Kind { kText, kName, kInteger, kNumber, kString, kSign, kOutput, kBlock, kEnd } kind = kEnd;
  std::string text;
  int line = 0;
};

/// The tokens of a template; its texts without the white space that tags strip. Throws kData, with `name` and
/// the line, for a tag that does not end, and for a character or escape that is not supported.
std::vector<TemplateToken> tokens_of(std::string_view source, const std::string& name);

/// Throws kData: what is wrong on a line of the template `name`.
[[noreturn]] void refuse(const std::string& name, int line, const std::string& what);

}  // namespace megalith::jinja
