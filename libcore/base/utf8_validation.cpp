// A file of its own, so that the program `megalith`, which links utf8.cpp, does not load simdjson.
#include <algorithm>

#include <simdjson.h>

#include "libcore/base/utf8.h"

namespace megalith {
namespace {

/// The length of the beginning of a valid sequence that `bytes` start with; 1 if they start with none.
/// `bytes` must not start with a complete sequence.
size_t maximal_subpart(std::string_view bytes) {
  for (size_t n = std::min<size_t>(bytes.size(), 3); n > 1; --n) {
    std::string completed(bytes.substr(0, n));
    completed += "\x80\x80";  // valid after any valid beginning of two or more bytes
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
