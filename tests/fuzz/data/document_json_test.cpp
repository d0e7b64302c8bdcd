#include "libcore/json/document_json.h"

#include <string>

#include "libcore/base/utf8.h"
#include "tests/fuzz/fuzz.h"

/// Reads each line of a corpus as a document.
MEGALITH_FUZZ_TARGET(document_json) {
  using namespace megalith;
  static DocumentParser parser({"text", "meta.text", "title"});
  std::string all(bytes);
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    const std::span<char> line(all.data() + begin, end - begin);
    begin = end + 1;
    if (const auto problem = parser.parse(line)) {
      if (problem->byte > line.size()) fail(ErrorKind::kInternal, "a problem behind the line");
      continue;
    }
    for (size_t key = 0; key < 3; ++key)
      for (const std::string_view text : parser.texts(key))
        if (valid_utf8_prefix(text) != text.size()) fail(ErrorKind::kInternal, "a text that is not UTF-8");
  }
}
