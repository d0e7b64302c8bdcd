#include "libcore/base/shell_word.h"

#include <algorithm>
#include <cctype>

namespace megalith {

std::string shell_word(std::string_view word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_./:,=+@%-").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string(word);
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
