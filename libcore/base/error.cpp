#include "libcore/base/error.h"

namespace megalith {

void concat_text(std::string& to, std::string_view text) {
  to += text;
}

void concat_signed(std::string& to, int64_t value) {
  to += std::to_string(value);
}

void concat_unsigned(std::string& to, uint64_t value) {
  to += std::to_string(value);
}

}  // namespace megalith
