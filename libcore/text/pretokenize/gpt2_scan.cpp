#include "libcore/text/pretokenize/gpt2_scan.h"

namespace megalith {

size_t find_gpt2_generic(std::string_view utf8, std::span<uint32_t> ends) {
  return find_one_by_one<gpt2_pretoken>(utf8, ends);
}

}  // namespace megalith
