#include "libcore/base/error.h"

namespace megalith {

Error::~Error() = default;
NoMemory::~NoMemory() = default;

void concat_text(std::string& to, std::string_view text) {
  to += text;
}

void concat_signed(std::string& to, int64_t value) {
  to += std::to_string(value);
}

void concat_unsigned(std::string& to, uint64_t value) {
  to += std::to_string(value);
}

void concat_streamed(std::string& to, const void* part, void (*write)(std::ostream&, const void*)) {
  std::ostringstream streamed;
  write(streamed, part);
  to += streamed.view();
}

}  // namespace megalith
