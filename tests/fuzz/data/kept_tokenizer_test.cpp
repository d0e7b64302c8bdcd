#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libcore/base/text.h"
#include "libcore/text/formats/gpt2_files.h"
#include "libcore/text/formats/packed_model.h"
#include "tests/fuzz/fuzz.h"

namespace megalith {
namespace {

// The packed tables of small tokenizers, as a run keeps those of large ones in the cache.

std::string packed(const CoreModel& model) {
  Packer out;
  pack(model, *make_core(model), out);
  return out.take();
}

std::string packed_byte_level() {
  const std::string folder = concat(MEGALITH_SOURCE_DIR, "/tests/text/goldens/trained/");
  return packed(read_gpt2_files(folder + "vocab.json", folder + "merges.txt"));
}

std::string packed_unigram() {
  UnigramModel model;
  model.name = "unigram";
  model.tokens = {"", "The", " ", "harbour", "'s", "s", "book", "o", "h", "a", "r", "12"};
  for (size_t id = 0; id < model.tokens.size(); ++id) model.scores.push_back(-static_cast<double>(id));
  model.rules.unknown_score = -30;
  model.rules.looks_up_runs = true;
  return packed(model);
}

/// Changes packed tables as the lines of `bytes` say.
std::string changed(std::string text, std::string_view bytes) {
  for (const std::string& line : split(bytes, '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    const std::optional<int64_t> at = parse_int(words[0]);
    if (!at || text.empty()) continue;
    const size_t place = static_cast<uint64_t>(*at) % text.size();
    if (words.size() == 1)
      text.resize(place);
    else
      text[place] = static_cast<char>(parse_int(words[1]).value_or(0));
  }
  return text;
}

void encode_with(const std::string& text) {
  struct alignas(64) Line {
    char bytes[64];
  };
  const auto kept = std::make_shared<std::vector<Line>>(text.size() / sizeof(Line) + 1);
  std::memcpy(kept->data(), text.data(), text.size());
  Unpacker in({kept->data()->bytes, text.size()}, kept);
  std::optional<CoreModel> model = unpack_core(in);
  if (!model || !in.whole()) return;
  const auto tokenizer = make_core(std::move(*model));
  std::vector<int32_t> ids;
  tokenizer->encode("The harbour's books <|endoftext|> 12\n", ids);
  tokenizer->decode(ids);
}

}  // namespace
}  // namespace megalith

/// Reads kept tables that were changed, and encodes with them. The input lists the changes, a line each: an
/// offset and the byte that is written there. A line of one number truncates the tables.
MEGALITH_FUZZ_TARGET(kept_tokenizer) {
  using namespace megalith;
  static const std::string kByteLevel = packed_byte_level(), kUnigram = packed_unigram();
  for (const std::string* whole : {&kByteLevel, &kUnigram}) encode_with(changed(*whole, bytes));
}
