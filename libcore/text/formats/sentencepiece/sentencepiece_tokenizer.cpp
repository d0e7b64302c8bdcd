#include "libcore/text/formats/sentencepiece/sentencepiece_tokenizer.h"

#include "libcore/base/plugin.h"

namespace megalith {

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(const std::string& type, const std::string& path) {
  static const Plugin kPlugin("libmegalith_sentencepiece.so");
  const auto make = kPlugin.function<Tokenizer*(const std::string&, const std::string&)>(
      "megalith_sentencepiece_tokenizer");
  return std::unique_ptr<Tokenizer>(make(type, path));
}

}  // namespace megalith
