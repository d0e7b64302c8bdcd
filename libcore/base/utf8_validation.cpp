// Separate from utf8.cpp, which the program `megalith` links: that program should not load simdjson.
#include <algorithm>

#include <simdjson.h>

#include "libcore/base/utf8.h"

namespace megalith {
namespace {

/// `bytes` does not begin with a valid sequence. Returns how many of its first bytes are the beginning of
/// one, or 1 if none are.
size_t maximal_subpart(std::string_view bytes) {
  for (size_t n = std::min<size_t>(bytes.size(), 3); n > 1; --n) {
    std::string completed(bytes.substr(0, n));
    completed += "\x80\x80";  // fits after any second byte
    if (utf8_sequence(completed) > n) return n;
  }
  return 1;
}

}  // namespace

size_t valid_utf8_prefix(std::string_view bytes) {
  if (simdjson::validate_utf8(bytes.data(), bytes.size())) return bytes.size();
  size_t at = 0;
  while (const size_t n = utf8_sequence(bytes.substr(at))) at += n;
  return at;
}

std::string replace_invalid_utf8(std::string_view bytes) {
  if (simdjson::validate_utf8(bytes.data(), bytes.size())) return std::string(bytes);
  std::string out;
  for (size_t n = 0; !bytes.empty(); bytes.remove_prefix(n)) {
    n = utf8_sequence(bytes);
    if (n > 0) {
      out += bytes.substr(0, n);
    } else {
      out += "\xEF\xBF\xBD";
      n = maximal_subpart(bytes);
    }
  }
  return out;
}

}  // namespace megalith
