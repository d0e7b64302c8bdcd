#include "libcore/base/flag_word.h"

#include <string>

#include "libcore/base/text.h"

namespace megalith {

std::optional<bool> parse_flag(std::string_view word) {
  const std::string lower = lower_ascii(word);
  if (lower == "true" || lower == "1" || lower == "yes" || lower == "on") return true;
  if (lower == "false" || lower == "0" || lower == "no" || lower == "off") return false;
  return std::nullopt;
}

}  // namespace megalith
