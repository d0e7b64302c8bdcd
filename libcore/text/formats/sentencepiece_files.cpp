#include "libcore/text/formats/sentencepiece_files.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/text/formats/byte_level_tokenizer.h"
#include "libcore/text/formats/packed_model.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_decoder.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_library.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_normalizer.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_symbols.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_table.h"
#include "libcore/text/formats/sentencepiece/whole_text_encoder.h"
#include "libcore/text/identity_hash.h"
#include "libcore/text/lazy_joined.h"

namespace megalith {
namespace {

/// Everything that a SentencePieceTokenizer is made from.
struct SentencePieceParts {
  CoreModel model;
  SentencePieceNormalizer::Settings normalizer;
  SentencePieceDecoder::Parts decoder;
  int32_t eod = -1;
  std::string hash;
};

/// What all models have in common that are encoded here.
class Pieces : public Tokenizer {
 public:
  Pieces(const std::string& type, const SentencePieceParts& parts, const std::string& path)
      : normalizer_(parts.normalizer, path),
        path_(path),
        name_(type),
        decoder_(parts.decoder),
        eod_(parts.eod),
        hash_(parts.hash) {}

  int vocab_size() const override { return static_cast<int>(decoder_.parts().texts.size()); }
  int eod() const override {
    if (eod_ < 0) fail(ErrorKind::kData, path_, ": the model has no end token (eos_id is -1)");
    return eod_;
  }
  std::string decode(std::span<const int32_t> ids) const override { return decoder_.decode(ids); }
  void decode_all(std::span<const int32_t> ids, ByteBuffer& out) const override {
    joined_.decode_all(*this, ids, out, [this] { return JoinedPieces::of(decoder_); });
  }
  std::string name() const override { return name_; }
  std::string hash() const override { return hash_; }

 protected:
  SentencePieceNormalizer normalizer_;

 private:
  std::string path_, name_;
  SentencePieceDecoder decoder_;
  LazyJoined<JoinedPieces> joined_;
  int32_t eod_;
  std::string hash_;
};

/// A model whose unused pieces need the text as a whole.
class WholeTextTokenizer : public Pieces {
 public:
  WholeTextTokenizer(const std::string& type, const SentencePieceParts& parts, WholeTextEncoder encoder,
                     const std::string& path)
      : Pieces(type, parts, path), encoder_(std::move(encoder)) {}

  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override {
    std::string normal;
    SentencePieceNormalizer::Run(normalizer_, utf8).next(utf8.size(), normal);
    encoder_.encode(normal, ids);
  }

 private:
  WholeTextEncoder encoder_;
};

CoreModel with_look_ahead(CoreModel model) {
  if (auto* const bpe = std::get_if<ByteLevelModel>(&model)) bpe->look_ahead = bpe->borders->look_ahead();
  return model;
}

/// Any other model: each text is normalized and then encoded as one of characters.
class SentencePieceTokenizer : public Pieces {
 public:
  SentencePieceTokenizer(const std::string& type, SentencePieceParts parts, const std::string& path)
      : Pieces(type, parts, path), core_(make_core(with_look_ahead(std::move(parts.model)))) {}

  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override {
    std::string memory;
    each_part(
        utf8, memory, [&](std::string_view text) { core_->encode(text, ids); },
        [&](std::span<const int32_t> more) { ids.insert(ids.end(), more.begin(), more.end()); });
  }
  void encode_to(std::string_view utf8, IdBuffer& out) const override {
    std::string memory;
    each_part(
        utf8, memory, [&](std::string_view text) { core_->encode_to(text, out); },
        [&](std::span<const int32_t> more) { out.append(more); });
  }
  void encode_in_parts(std::string_view utf8, const TakeIds& take) const override {
    std::string memory;
    each_part(
        utf8, memory, [&](std::string_view text) { core_->encode_in_parts(text, take); }, take);
  }
  void encode_all(std::span<const std::string_view> texts, IdBuffer& out) const override {
    std::string memory;
    core_->encode_all_with([&](std::string_view text, const auto& plain,
                               const auto& ids) { each_part(text, memory, plain, ids); },
                           texts, out);
  }
  void expect(uint64_t bytes) override { core_->expect(bytes); }
  const CoreTokenizer& core() const { return *core_; }

 private:
  /// Normalizes a text, in `normal`. Calls `text` with the parts that core_ must encode, and `ids` with the
  /// ids of very long pretokens, which the stream merges itself.
  template <class Text, class Ids>
  void each_part(std::string_view utf8, std::string& normal, const Text& text, const Ids& ids) const {
    SentencePieceNormalizer::Run run(normalizer_, utf8);
    normal.clear();
    if (utf8.size() <= CoreTokenizer::kLongText) {
      run.next(utf8.size(), normal);
      if (!normal.empty()) text(normal);
      return;
    }
    const std::unique_ptr<CoreTokenizer::Stream> stream = core_->stream({.text = text, .ids = ids});
    for (bool more = true; more; normal.clear()) {
      more = run.next(CoreTokenizer::kPartBytes, normal);
      stream->add(normal);
    }
    stream->finish();
  }

  std::unique_ptr<CoreTokenizer> core_;
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

/// Whether read_parts() can be called for this model. Other models go to the library.
bool is_encoded_here(const SentencePieceTable& table) {
  const bool has_kind =
      table.trainer.kind == SentencePieceTable::kBpe || table.trainer.kind == SentencePieceTable::kUnigram;
  return has_kind && !table.denormalizes && !find_invalid_text(table);
}

/// The score of unknown characters, and of user-defined pieces, in the number type of the library
/// (unigram_model.cc).
float unknown_score(const SentencePieceTable& table) {
  constexpr float kPenalty = 10;
  float worst = std::numeric_limits<float>::max();
  for (const SentencePieceTable::Token& token : table.tokens)
    if (token.type == SentencePieceTable::kNormal) worst = std::min(worst, token.score);
  return worst - kPenalty;
}
float user_defined_score(const SentencePieceTable::Token& token) {
  return static_cast<float>(0.1 * static_cast<double>(token.text.size() - 1));
}

UnigramModel unigram_of(const std::string& type, const SentencePieceTable& table, const std::string& blank) {
  UnigramModel model;
  model.name = type;
  model.rules.sums = UnigramRules::Sums::kFloat;
  model.rules.unknown = unknown_id(table);
  model.rules.unknown_score = unknown_score(table);
  if (table.trainer.byte_fallback) model.rules.bytes = byte_ids(table);
  for (const SentencePieceTable::Token& token : table.tokens) {
    const bool is_used = token.type != SentencePieceTable::kUnused;
    const bool is_user_defined = token.type == SentencePieceTable::kUserDefined;
    model.tokens.push_back(is_used ? normalized_text(table, token, blank) : "");
    model.scores.push_back(is_user_defined ? user_defined_score(token) : token.score);
  }
  return model;
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

// The following store what later runs need of a model, so that they need not make its merges.

std::vector<std::string> texts_of(const TokenTexts& texts) {
  std::vector<std::string> list;
  for (size_t i = 0; i < texts.size(); ++i) list.emplace_back(texts[i]);
  return list;
}

std::string pack_parts(const SentencePieceParts& parts, const CoreTokenizer& core) {
  const auto& [rules, space_after, blank, user_defined] = parts.normalizer;
  Packer out;
  const std::array<int32_t, 7> numbers = {
      rules.add_space, rules.remove_extra_spaces,       rules.escape_spaces,
      space_after,     parts.decoder.drops_first_blank, parts.decoder.drops_every_first,
      parts.eod};
  out.add(std::span<const int32_t>(numbers));
  out.add(rules.charsmap);
  out.add(blank);
  pack(TokenTexts(user_defined), out);
  pack(parts.decoder.texts, out);
  out.add(std::span<const uint8_t>(parts.decoder.types));
  out.add(parts.decoder.unknown_text);
  out.add(parts.hash);
  pack(parts.model, core, out);
  return out.take();
}

/// Whether the model can encode long texts part by part, as all do that are packed here.
bool takes_any_text(const CoreModel& model) {
  const auto* const bpe = std::get_if<ByteLevelModel>(&model);
  return !bpe || bpe->borders;
}

/// Nothing if parts are damaged or contradict each other.
std::optional<SentencePieceParts> unpack_parts(Unpacker in) {
  SentencePieceParts parts;
  SentencePieceNormalizer::Settings& normalizer = parts.normalizer;
  const auto numbers = in.array<int32_t>();
  normalizer.rules.charsmap = in.text();
  normalizer.blank = in.text();
  const auto user_defined = unpack_texts(in), texts = unpack_texts(in);
  parts.decoder.types = in.array<uint8_t>();
  parts.decoder.unknown_text = in.text();
  parts.hash = in.text();
  std::optional<CoreModel> model = unpack_core(in);
  if (numbers.size() != 7 || !user_defined || !texts || !model || !in.whole() || !takes_any_text(*model) ||
      parts.decoder.types.size() != texts->size() || packed_size(*model) < texts->size())
    return std::nullopt;
  normalizer.rules.add_space = numbers[0] != 0;
  normalizer.rules.remove_extra_spaces = numbers[1] != 0;
  normalizer.rules.escape_spaces = numbers[2] != 0;
  normalizer.space_after = numbers[3] != 0;
  normalizer.user_defined = texts_of(*user_defined);
  parts.decoder.drops_first_blank = numbers[4] != 0;
  parts.decoder.drops_every_first = numbers[5] != 0;
  parts.decoder.texts = *texts;
  parts.eod = numbers[6];
  parts.model = std::move(*model);
  return parts;
}

/// All parts but the model.
SentencePieceParts read_parts(const SentencePieceTable& table, const std::string& blank,
                              std::string_view bytes) {
  SentencePieceParts parts;
  parts.normalizer = normalizer_of(table, blank);
  parts.decoder = SentencePieceDecoder(table).parts();
  parts.eod = end_id(table);
  IdentityHash hash;
  hash.add("SentencePiece");
  hash.add(bytes);
  parts.hash = hash.hex();
  return parts;
}

}  // namespace

std::unique_ptr<Tokenizer> read_sentencepiece_tokenizer(const std::string& type, const std::string& path) {
  const std::string files[] = {path};
  const std::optional<CachedFile> kept = kept_file("sentencepiece", files, {});
  if (kept)
    if (const auto packed = kept->load())
      if (std::optional<SentencePieceParts> parts = unpack_parts({packed->text(), packed}))
        return std::make_unique<SentencePieceTokenizer>(type, std::move(*parts), path);
  const std::string bytes = read_file(path);
  const SentencePieceTable table = parse_sentencepiece_table(bytes, path);
  check_sentencepiece(table, path);
  if (!is_encoded_here(table)) return sentencepiece_library_tokenizer(type, path, bytes);
  const std::string blank = blank_of(table);
  SentencePieceParts parts = read_parts(table, blank, bytes);
  if (table.trainer.kind == SentencePieceTable::kUnigram) {
    parts.model = unigram_of(type, table, blank);
  } else {
    SentencePieceSymbols symbols(table);
    if (symbols.has_ambiguous_unused)
      return std::make_unique<WholeTextTokenizer>(type, parts, WholeTextEncoder(table, std::move(symbols)),
                                                  path);
    parts.model = model_of(type, std::move(symbols));
  }
  auto tokenizer = std::make_unique<SentencePieceTokenizer>(type, parts, path);
  if (kept) kept->store(pack_parts(parts, tokenizer->core()));
  return tokenizer;
}

}  // namespace megalith
