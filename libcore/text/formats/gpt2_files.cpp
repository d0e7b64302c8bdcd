#include "libcore/text/formats/gpt2_files.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/text/formats/packed_model.h"
#include "libcore/text/formats/vocabulary.h"

namespace megalith {
namespace {

constexpr const char* kEndOfText = "<|endoftext|>";

struct MergeLine {
  Vocabulary::Sides sides;
  int64_t number;
};

/// The merges in the contents of the file `path`.
std::vector<MergeLine> merge_lines(const std::string& path, std::string_view contents) {
  std::vector<MergeLine> lines;
  std::string_view rest = contents;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("#version")) continue;
    if (line.empty() && trim(rest).empty()) break;  // only blank lines are left
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos || blank != line.rfind(' '))
      fail(ErrorKind::kData, path, ":", number, ": found ", quote(line),
           ", wanted two tokens with one blank between them");
    lines.push_back({{line.substr(0, blank), line.substr(blank + 1)}, number});
  }
  return lines;
}

std::vector<BytePairEncoder::Merge> read_merges(const std::string& path, const Vocabulary& vocabulary) {
  const std::string contents = read_file(path);
  const std::vector<MergeLine> lines = merge_lines(path, contents);
  return vocabulary.merges(
      lines.size(), [&](size_t i) { return lines[i].sides; },
      [&](size_t i) { return concat(path, ":", lines[i].number); });
}

}  // namespace

ByteLevelModel read_gpt2_files(const std::string& vocab, const std::string& merges,
                               const Gpt2Settings& settings) {
  const std::string end = settings.eod.empty() ? kEndOfText : settings.eod;
  Vocabulary vocabulary(Json::load(vocab), vocab);
  ByteLevelModel model;
  model.name = "GPT2BPETokenizer";
  model.merges = read_merges(merges, vocabulary);
  AddedTokenList added(vocabulary, model);
  for (const std::string& text : settings.special) added.add_special(text);
  vocabulary.fill(model);
  const auto eod = vocabulary.find(end);
  if (!eod)
    fail(ErrorKind::kData, vocab, ": no token ", quote(end),
         settings.eod.empty() ? ", which ends a document; name the one that does with --eod-token"
                              : ", which --eod-token names");
  model.eod = *eod;
  const auto is_eod = [&](const AddedToken& token) { return token.id == model.eod; };
  if (std::none_of(model.raw_added.begin(), model.raw_added.end(), is_eod))
    model.normalized_added.push_back({.text = end, .id = model.eod});
  return model;
}

std::unique_ptr<ByteLevelTokenizer> make_gpt2_tokenizer(const std::string& vocab, const std::string& merges,
                                                        const Gpt2Settings& settings) {
  const auto read = [&] { return read_gpt2_files(vocab, merges, settings); };
  const std::string files[] = {vocab, merges};
  std::vector<std::string> words = settings.special;
  if (!settings.eod.empty()) words.push_back("--eod-token " + settings.eod);
  return kept_tokenizer(kept_file("gpt2", files, words), pretokenizer(PretokenPattern::kGpt2), read);
}

}  // namespace megalith
