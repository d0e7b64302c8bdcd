#include "libcore/text/formats/sentencepiece/sentencepiece_library.h"

#include "libcore/base/plugins/plugin.h"

namespace megalith {

std::unique_ptr<Tokenizer> sentencepiece_library_tokenizer(const std::string& type, const std::string& path,
                                                           std::string_view bytes) {
  static const Plugin kPlugin("libmegalith_sentencepiece.so");
  const auto make = kPlugin.function<Tokenizer*(const std::string&, const std::string&, std::string_view)>(
      "megalith_sentencepiece_tokenizer");
  return std::unique_ptr<Tokenizer>(make(type, path, bytes));
}

}  // namespace megalith
