#include "libcore/text/gpt2_files.h"

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/text.h"
#include "libcore/text/vocabulary.h"

namespace megalith {
namespace {

constexpr const char* kEndOfText = "<|endoftext|>";

std::vector<BytePairEncoder::Merge> read_merges(const std::string& path, const Vocabulary& vocabulary) {
  std::vector<BytePairEncoder::Merge> merges;
  const std::string contents = read_file(path);
  std::string_view rest = contents;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version")) continue;
    if (line.empty() && trim(rest).empty()) break;  // blank lines at the end
    const std::string where = concat(path, ":", number);
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos || blank != line.rfind(' '))
      fail(ErrorKind::kData, where, ": found ", quote(line),
           ", wanted two tokens with one blank between them");
    merges.push_back(
        vocabulary.merge(std::string(line.substr(0, blank)), std::string(line.substr(blank + 1)), where));
  }
  return merges;
}

}  // namespace

ByteLevelModel read_gpt2_files(const std::string& vocab, const std::string& merges) {
  const Vocabulary vocabulary(Json::load(vocab), vocab);
  ByteLevelModel model;
  model.name = "GPT2BPETokenizer";
  vocabulary.fill(model);
  model.merges = read_merges(merges, vocabulary);
  const auto eod = vocabulary.find(kEndOfText);
  if (!eod)
    fail(ErrorKind::kData, vocab, ": no token ", quote(kEndOfText),
         ", which ends a document; add it with the next free id");
  model.eod = *eod;
  model.normalized_added = {AddedToken{.text = kEndOfText, .id = *eod}};
  return model;
}

}  // namespace megalith
