#include "libcore/base/utf8.h"

#include <algorithm>

#include <simdjson.h>
#include <utf8proc.h>

namespace megalith {
namespace {

/// How many bytes at the start of `bytes`, which does not begin with a valid sequence, are the beginning of
/// one (at least 1).
size_t maximal_subpart(std::string_view bytes) {
  for (size_t n = std::min<size_t>(bytes.size(), 3); n > 1; --n) {
    std::string completed(bytes.substr(0, n));
    completed += "\x80\x80";  // fits after any second byte
    if (utf8_sequence(completed) > n) return n;
  }
  return 1;
}

}  // namespace

size_t utf8_sequence(std::string_view bytes) {
  utf8proc_int32_t code_point = 0;
  const utf8proc_ssize_t n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()),
                                              static_cast<utf8proc_ssize_t>(bytes.size()), &code_point);
  return static_cast<size_t>(std::max<utf8proc_ssize_t>(n, 0));
}

size_t valid_utf8_prefix(std::string_view bytes) {
  if (simdjson::validate_utf8(bytes.data(), bytes.size())) return bytes.size();
  size_t at = 0;
  while (const size_t n = utf8_sequence(bytes.substr(at))) at += n;
  return at;
}

int64_t count_code_points(std::string_view utf8) {
  int64_t n = 0;
  for (const char c : utf8) n += continues_character(c) ? 0 : 1;
  return n;
}

char* write_utf8(char* out, uint32_t code_point) {
  return out + utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point),
                                    reinterpret_cast<utf8proc_uint8_t*>(out));
}

void append_utf8(std::string& out, uint32_t code_point) {
  char bytes[4];
  out.append(bytes, write_utf8(bytes, code_point));
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
