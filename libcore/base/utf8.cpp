#include "libcore/base/utf8.h"

#include <algorithm>

#include <utf8proc.h>

namespace megalith {

size_t utf8_sequence(std::string_view bytes) {
  utf8proc_int32_t code_point = 0;
  const utf8proc_ssize_t n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()),
                                              static_cast<utf8proc_ssize_t>(bytes.size()), &code_point);
  return static_cast<size_t>(std::max<utf8proc_ssize_t>(n, 0));
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

}  // namespace megalith
