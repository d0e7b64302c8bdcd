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

/// The packed tables of a small tokenizer, as a run keeps those of a large one in the cache.
std::string packed() {
  const std::string folder = concat(MEGALITH_SOURCE_DIR, "/tests/text/goldens/trained/");
  ByteLevelModel model = read_gpt2_files(folder + "vocab.json", folder + "merges.txt");
  model.tables = ByteLevelTokenizer(model).tables();
  Packer out;
  pack(model, out);
  return out.take();
}

}  // namespace
}  // namespace megalith

/// Reads kept tables that were changed, and encodes with them. The input lists the changes, a line each: an
/// offset and the byte that is written there. A line of one number truncates the tables.
MEGALITH_FUZZ_TARGET(kept_tokenizer) {
  using namespace megalith;
  struct alignas(64) Line {
    char bytes[64];
  };
  static const std::string kWhole = packed();
  std::string text = kWhole;
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
  const auto kept = std::make_shared<std::vector<Line>>(text.size() / sizeof(Line) + 1);
  std::memcpy(kept->data(), text.data(), text.size());
  Unpacker in({kept->data()->bytes, text.size()}, kept);
  std::optional<ByteLevelModel> model = unpack_model(in);
  if (!model || !in.whole()) return;
  const ByteLevelTokenizer tokenizer(std::move(*model));
  std::vector<int32_t> ids;
  tokenizer.encode("The harbour's books <|endoftext|> 12\n", ids);
  tokenizer.decode(ids);
}
