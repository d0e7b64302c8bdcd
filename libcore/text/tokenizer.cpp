#include "libcore/text/tokenizer.h"

namespace megalith {

void Tokenizer::encode_to(std::string_view utf8, IdBuffer& out) const {
  std::vector<int32_t> ids;
  encode(utf8, ids);
  out.append(ids);
}

void Tokenizer::encode_in_parts(std::string_view utf8, const TakeIds& take) const {
  std::vector<int32_t> ids;
  encode(utf8, ids);
  take(ids);
}

}  // namespace megalith
