#include "libcore/text/formats/sentencepiece_files.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/utf8.h"
#include "libcore/io/files/file.h"
#include "libcore/text/formats/byte_level_tokenizer.h"
#include "libcore/text/formats/pretoken_stream.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_decoder.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_library.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_normalizer.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_symbols.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_table.h"
#include "libcore/text/identity_hash.h"

namespace megalith {
namespace {

/// Everything that a SentencePieceTokenizer is made from.
struct SentencePieceParts {
  ByteLevelModel model;
  SentencePieceNormalizer::Settings normalizer;
  SentencePieceDecoder::Parts decoder;
  int32_t eod = -1;
  std::string hash;
};

/// A BPE model: each text is normalized and then encoded as one of characters.
class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(SentencePieceParts parts, const std::string& path)
      : path_(path),
        look_ahead_(parts.model.borders->look_ahead()),
        core_(std::move(parts.model)),
        normalizer_(std::move(parts.normalizer), path),
        decoder_(std::move(parts.decoder)),
        eod_(parts.eod),
        hash_(std::move(parts.hash)) {}

  int vocab_size() const override { return static_cast<int>(decoder_.parts().texts.size()); }
  int eod() const override {
    if (eod_ < 0) fail(ErrorKind::kData, path_, ": the model has no end token (eos_id is -1)");
    return eod_;
  }
  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override {
    each_part(
        utf8, [&](std::string_view text) { core_.encode(text, ids); },
        [&](std::span<const int32_t> more) { ids.insert(ids.end(), more.begin(), more.end()); });
  }
  void encode_to(std::string_view utf8, IdBuffer& out) const override {
    each_part(
        utf8, [&](std::string_view text) { core_.encode_to(text, out); },
        [&](std::span<const int32_t> more) { out.append(more); });
  }
  void encode_in_parts(std::string_view utf8, const TakeIds& take) const override {
    each_part(
        utf8, [&](std::string_view text) { core_.encode_in_parts(text, take); }, take);
  }
  void expect(uint64_t bytes) override { core_.expect(bytes); }
  std::string decode(std::span<const int32_t> ids) const override { return decoder_.decode(ids); }
  std::string name() const override { return core_.name(); }
  std::string hash() const override { return hash_; }

  const ByteLevelTokenizer& core() const { return core_; }

 private:
  /// Calls `text` with normalized pieces that the model must encode, and `ids` with ids that are found
  /// without it.
  template <class Text, class Ids>
  void each_part(std::string_view utf8, const Text& text, const Ids& ids) const {
    SentencePieceNormalizer::Run run(normalizer_, utf8);
    std::string normal;
    if (utf8.size() <= PretokenStream::kLongText) {
      run.next(utf8.size(), normal);
      if (!normal.empty()) text(normal);
      return;
    }
    PretokenStream stream(core_, look_ahead_, {.text = text, .ids = ids});
    for (bool more = true; more; normal.clear()) {
      more = run.next(PretokenStream::kBit, normal);
      stream.add(normal);
    }
    stream.finish();
  }

  std::string path_;
  size_t look_ahead_;
  ByteLevelTokenizer core_;
  SentencePieceNormalizer normalizer_;
  SentencePieceDecoder decoder_;
  int32_t eod_;
  std::string hash_;
};

/// The id of the piece that ends a text; -1: no control piece has its text (SentencePieceProcessor::eos_id).
int32_t end_id(const SentencePieceTable& table) {
  const std::string wanted = table.trainer.end_token.empty() ? "</s>" : table.trainer.end_token;
  const auto is_end = [&](const SentencePieceTable::Token& token) {
    return token.type == SentencePieceTable::kControl && token.text == wanted;
  };
  const auto found = std::find_if(table.tokens.begin(), table.tokens.end(), is_end);
  return found == table.tokens.end() ? -1 : static_cast<int32_t>(found - table.tokens.begin());
}

bool has_valid_texts(const SentencePieceTable& table) {
  return std::all_of(table.tokens.begin(), table.tokens.end(), [](const SentencePieceTable::Token& token) {
    return valid_utf8_prefix(token.text) == token.text.size();
  });
}

/// Whether read_parts() can be called for this model. Other models go to the library.
bool is_encoded_here(const SentencePieceTable& table) {
  return table.trainer.kind == SentencePieceTable::kBpe && !table.denormalizes && has_valid_texts(table);
}

ByteLevelModel model_of(const std::string& type, SentencePieceSymbols symbols) {
  ByteLevelModel model;
  model.name = type;
  model.rules = "SentencePiece";
  model.characters.emplace(symbols.texts, symbols.unknown, symbols.ends);
  auto borders = std::make_shared<CharacterBorders>(symbols.texts, symbols.merges, *model.characters);
  for (const AddedToken& token : symbols.whole) model.whole.push_back(token.id);
  borders->keep_whole(std::move(symbols.whole));
  model.borders = std::move(borders);
  model.tokens = std::move(symbols.texts);
  model.merges = std::move(symbols.merges);
  model.ranks = MergeRanks::kGiven;
  model.given_ranks = std::move(symbols.ranks);
  return model;
}

SentencePieceNormalizer::Settings normalizer_of(const SentencePieceTable& table, const std::string& blank) {
  SentencePieceNormalizer::Settings settings{
      .rules = table.rules, .space_after = table.trainer.space_after, .blank = blank, .user_defined = {}};
  for (const SentencePieceTable::Token& token : table.tokens)
    if (token.type == SentencePieceTable::kUserDefined) settings.user_defined.push_back(token.text);
  return settings;
}

}  // namespace

std::unique_ptr<Tokenizer> read_sentencepiece_tokenizer(const std::string& type, const std::string& path) {
  const std::string bytes = read_file(path);
  const SentencePieceTable table = parse_sentencepiece_table(bytes, path);
  check_sentencepiece(table, path);
  if (!is_encoded_here(table)) return sentencepiece_library_tokenizer(type, path, bytes);
  SentencePieceSymbols symbols(table);
  if (symbols.has_ambiguous_unused) return sentencepiece_library_tokenizer(type, path, bytes);
  SentencePieceParts parts;
  parts.normalizer = normalizer_of(table, symbols.blank);
  parts.model = model_of(type, std::move(symbols));
  parts.decoder = SentencePieceDecoder(table).parts();
  parts.eod = end_id(table);
  IdentityHash hash;
  hash.add("SentencePiece");
  hash.add(bytes);
  parts.hash = hash.hex();
  return std::make_unique<SentencePieceTokenizer>(std::move(parts), path);
}

}  // namespace megalith
