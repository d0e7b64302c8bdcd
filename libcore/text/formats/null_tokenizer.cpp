#include "libcore/text/formats/null_tokenizer.h"

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/identity_hash.h"

namespace megalith {

void NullTokenizer::encode(std::string_view utf8, std::vector<int32_t>& ids) const {
  for (const std::string& word : split(utf8, ' ')) {
    const auto id = parse_int(word);
    if (!id || *id < 0 || *id > size_)
      fail(ErrorKind::kData, "NullTokenizer: ", quote(word), " is not an id; wanted numbers from 0 to ",
           size_, " with one blank between them");
    ids.push_back(static_cast<int32_t>(*id));
  }
}

std::string NullTokenizer::decode(std::span<const int32_t> ids) const {
  std::string out;
  for (int32_t id : ids) {
    if (id < 0 || id > size_) fail(ErrorKind::kData, "NullTokenizer: token id ", id, ", wanted 0 to ", size_);
    if (!out.empty()) out += ' ';
    out += std::to_string(id);
  }
  return out;
}

std::string null_vocabulary_note(const Tokenizer& tokenizer) {
  if (dynamic_cast<const NullTokenizer*>(&tokenizer) == nullptr) return {};
  const int end = tokenizer.eod();
  return concat("NullTokenizer: ", end, " ids by --vocab-size and, as in Megatron, id ", end,
                " for the end of a document: ", end + 1, " in all");
}

std::string NullTokenizer::hash() const {
  IdentityHash hash;
  hash.add("ids");
  hash.add(int64_t{size_});
  return hash.hex();
}

}  // namespace megalith
