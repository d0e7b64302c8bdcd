#include "libcore/base/shell_word.h"

#include <algorithm>
#include <cctype>

#include "libcore/base/terminal.h"
#include "libcore/base/text.h"

namespace megalith {

namespace {

/// In quotes in which the shell reads \xHH as a byte. Two digits always, since bash takes no more than two.
std::string escaped_word(std::string_view word) {
  std::string out = "$'";
  for (const char c : word) {
    if (c == '\'' || c == '\\') out += '\\';
    if (c >= ' ' && c <= '~') {
      out += c;
      continue;
    }
    out += "\\x";
    append_hex(out, static_cast<unsigned char>(c), 2);
  }
  return out + '\'';
}

}  // namespace

std::string shell_word(std::string_view word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_./:,=+@%-").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string(word);
  if (printable(word) != word) return escaped_word(word);
  std::string quoted = "\"";
  for (const char c : word) {
    if (std::string_view("\"\\$`").find(c) != std::string_view::npos) quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) c == '\'' ? out += "'\\''" : out += c;
  return out + '\'';
}

}  // namespace megalith
