#include "libcore/text/tokenizer.h"

#include <algorithm>

#include "libcore/base/error.h"

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

void Tokenizer::encode_all(std::span<const std::string_view> texts, IdBuffer& out) const {
  for (const std::string_view text : texts) {
    encode_to(text, out);
    out.append({&kTextEnd, 1});
  }
}

void Tokenizer::decode_all(std::span<const int32_t> ids, ByteBuffer& out) const {
  while (!ids.empty()) {
    const auto size = static_cast<size_t>(std::find(ids.begin(), ids.end(), kTextEnd) - ids.begin());
    const std::string text = decode(ids.first(size));
    out.append(text.data(), text.size());
    *out.extend(1) = '\n';
    ids = ids.subspan(size + 1);
  }
}

void refuse_token_id(int32_t id, size_t size) {
  fail(ErrorKind::kData, "token id ", id, " is not in the vocabulary; ids are 0 to ", size - 1);
}

}  // namespace megalith
