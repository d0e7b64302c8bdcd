#include "libcore/text/formats/packed_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <numeric>
#include <type_traits>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/hash/sha256.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

/// The version of the stored files. It must go up whenever their format changes, or the way in which the hash
/// or another stored value is computed: otherwise old files would be read as new ones.
constexpr int kPackedVersion = 10;

struct PackedAdded {
  uint32_t bytes;  // bytes of the token's text
  int32_t id;
  uint32_t flags;  // lstrip, rstrip, single_word
};

/// Cuts `bytes` into texts of these sizes; nothing if the sizes do not add up to all of `bytes`.
std::optional<std::vector<std::string>> cut(std::string_view bytes, std::span<const uint32_t> sizes) {
  if (std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}) != bytes.size()) return std::nullopt;
  std::vector<std::string> texts;
  texts.reserve(sizes.size());
  for (const uint32_t size : sizes) {
    texts.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return texts;
}

void pack_added(const std::vector<AddedToken>& tokens, Packer& out) {
  std::vector<PackedAdded> entries;
  std::string bytes;
  for (const AddedToken& token : tokens) {
    const uint32_t flags = (token.takes_space_before ? 1u : 0u) | (token.takes_space_after ? 2u : 0u) |
                           (token.only_alone ? 4u : 0u);
    entries.push_back({static_cast<uint32_t>(token.text.size()), token.id, flags});
    bytes += token.text;
  }
  out.add(std::span<const PackedAdded>(entries));
  out.add(bytes);
}

std::optional<std::vector<AddedToken>> unpack_added(Unpacker& in) {
  const auto entries = in.array<PackedAdded>();
  std::vector<uint32_t> sizes;
  for (const PackedAdded& entry : entries) sizes.push_back(entry.bytes);
  auto texts = cut(in.text(), sizes);
  if (!texts || std::find(sizes.begin(), sizes.end(), 0u) != sizes.end()) return std::nullopt;
  std::vector<AddedToken> tokens;
  for (size_t i = 0; i < entries.size(); ++i)
    tokens.push_back({.text = std::move((*texts)[i]),
                      .id = entries[i].id,
                      .takes_space_before = (entries[i].flags & 1) != 0,
                      .takes_space_after = (entries[i].flags & 2) != 0,
                      .only_alone = (entries[i].flags & 4) != 0});
  return tokens;
}

bool fits(int64_t id, size_t size) {
  return static_cast<uint64_t>(id) < size;
}

bool fits_or_none(int64_t id, size_t size) {
  return id == -1 || fits(id, size);
}

/// Whether the added tokens and the end of a document are among `size` tokens.
bool added_and_end_fit(const TokenizerModel& model, size_t size) {
  const auto fit = [size](const std::vector<AddedToken>& tokens) {
    return std::all_of(tokens.begin(), tokens.end(), [&](const AddedToken& t) { return fits(t.id, size); });
  };
  return fit(model.raw_added) && fit(model.normalized_added) && fits_or_none(model.eod, size);
}

/// Whether every id in the model is one of its tokens. The file may be damaged, and ids are used as indices.
bool ids_fit(const ByteLevelModel& model) {
  const ByteLevelTables& tables = *model.tables;
  const size_t size = tables.tokens.size();
  const auto is_token = [size](int64_t id) { return fits(id, size); };
  const bool characters_fit =
      !model.characters || CharacterIds::fit(model.characters->arrays(), model.characters->unknown(), size);
  return characters_fit && std::all_of(model.byte_ids.begin(), model.byte_ids.end(), is_token) &&
         std::all_of(tables.seeds.begin(), tables.seeds.end(),
                     [&](const PieceSeed& seed) { return is_token(seed.id); }) &&
         std::all_of(tables.unmerged.begin(), tables.unmerged.end(), is_token) &&
         added_and_end_fit(model, size);
}

void pack(const ByteLevelTables& tables, Packer& out) {
  pack(tables.tokens, out);
  out.add(tables.merges.buckets.span());
  out.add(tables.merges.merged.span());
  out.add(tables.merges.byte_ranks.span());
  out.add(tables.merges.ties.span());
  out.add(tables.borders.ways.span());
  out.add(tables.borders.known.span());
  out.add(tables.borders.doubts.span());
  out.add(tables.seeds.span());
  out.add(std::span<const int32_t>(tables.unmerged));
  out.add(tables.hash);
}

std::optional<ByteLevelTables> unpack_tables(Unpacker& in) {
  ByteLevelTables tables;
  std::optional<TokenTexts> tokens = unpack_texts(in);
  if (!tokens) return std::nullopt;
  tables.tokens = std::move(*tokens);
  tables.merges.buckets = in.shared<BytePairEncoder::Bucket>();
  tables.merges.merged = in.shared<int32_t>();
  tables.merges.byte_ranks = in.shared<uint32_t>();
  tables.merges.ties = in.shared<BytePairEncoder::Bucket>();
  tables.borders.ways = in.shared<uint16_t>();
  tables.borders.known = in.shared<uint64_t>();
  tables.borders.doubts = in.shared<uint8_t>();
  tables.seeds = in.shared<PieceSeed>();
  tables.unmerged = in.array<int32_t>();
  tables.hash = in.text();
  if (!BytePairEncoder::fit(tables.merges, tables.tokens.size()) || !MergeBorders::fit(tables.borders))
    return std::nullopt;
  return tables;
}

}  // namespace

namespace {

/// Whether the model has characters and borders, the unknown token (-1: none), and whether it is fused.
using CharacterNumbers = std::array<int32_t, 4>;

void pack_characters(const ByteLevelModel& model, Packer& out) {
  const CharacterIds* const characters = model.characters ? &*model.characters : nullptr;
  const CharacterIds::Unknown unknown = characters ? characters->unknown() : CharacterIds::Unknown();
  const CharacterNumbers numbers = {characters != nullptr, model.borders != nullptr, unknown.id.value_or(-1),
                                    unknown.fuse};
  out.add(std::span<const int32_t>(numbers));
  if (characters) {
    out.add(std::span<const int32_t>(unknown.bytes));
    out.add(characters->arrays().of_character.span());
    out.add(characters->arrays().ends.span());
    out.add(characters->arrays().end_ids.span());
  }
  if (model.borders) {
    out.add(model.borders->arrays().ascii.span());
    out.add(model.borders->arrays().others.span());
    out.add(model.borders->arrays().known.span());
  }
}

/// Fills characters and borders, the latter without the texts that they keep whole. Returns whether what was
/// stored has their form.
bool unpack_characters(Unpacker& in, ByteLevelModel& model, std::optional<CharacterBorders>& borders) {
  const auto numbers = in.array<int32_t>();
  if (numbers.size() != std::tuple_size_v<CharacterNumbers>) return false;
  if (numbers[0] != 0) {
    CharacterIds::Unknown unknown{.id = {}, .fuse = numbers[3] != 0};
    if (numbers[2] != -1) unknown.id = numbers[2];
    const auto bytes = in.array<int32_t>();
    if (bytes.size() != unknown.bytes.size()) return false;
    std::copy(bytes.begin(), bytes.end(), unknown.bytes.begin());
    CharacterIds::Arrays arrays;
    arrays.of_character = in.shared<int32_t>();
    arrays.ends = in.shared<uint32_t>();
    arrays.end_ids = in.shared<int32_t>();
    model.characters.emplace(std::move(arrays), unknown);
  }
  if (numbers[1] != 0) {
    CharacterBorders::Arrays arrays;
    arrays.ascii = in.shared<uint64_t>();
    arrays.others = in.shared<uint64_t>();
    arrays.known = in.shared<uint64_t>();
    if (numbers[0] == 0 || !CharacterBorders::fit(arrays)) return false;
    borders.emplace(std::move(arrays));
  }
  return true;
}

/// The tokens that are pretokens wherever they occur (ByteLevelModel::whole).
std::vector<AddedToken> whole_tokens(const ByteLevelTables& tables) {
  std::vector<AddedToken> tokens;
  for (const int32_t id : tables.unmerged)
    tokens.push_back({.text = std::string(tables.tokens[static_cast<size_t>(id)]), .id = id});
  return tokens;
}

bool have_texts(const std::vector<AddedToken>& tokens) {
  return std::none_of(tokens.begin(), tokens.end(), [](const AddedToken& t) { return t.text.empty(); });
}

}  // namespace

std::string_view Unpacker::take(size_t size) {
  const size_t padding = Packer::padding(size_ - rest_.size());
  uint64_t count = 0;
  if (!whole_ || rest_.size() < padding + sizeof count) {
    whole_ = false;
    return {};
  }
  std::memcpy(&count, rest_.data() + padding, sizeof count);
  rest_.remove_prefix(padding + sizeof count);
  if (count > rest_.size() / size) {
    whole_ = false;
    return {};
  }
  const std::string_view bytes = rest_.substr(0, count * size);
  rest_.remove_prefix(bytes.size());
  return bytes;
}

void pack(const TokenTexts& texts, Packer& out) {
  out.add(texts.bytes().span());
  out.add(texts.ends().span());
}

std::optional<TokenTexts> unpack_texts(Unpacker& in) {
  const auto bytes = in.shared<char>();
  const auto ends = in.shared<uint32_t>();
  if (!TokenTexts::fit(bytes, ends)) return std::nullopt;
  return TokenTexts(bytes, ends);
}

void pack(const ByteLevelModel& model, Packer& out) {
  if (!model.tables) fail(ErrorKind::kInternal, model.name, ": a model without tables cannot be kept");
  out.add(model.name);
  out.add(model.rules);
  const std::array<int32_t, 2> numbers = {model.ignore_merges, model.eod};
  out.add(std::span<const int32_t>(numbers));
  out.add(std::span<const int32_t>(model.byte_ids));
  out.add(model.dropped);
  out.add(model.mark);
  pack_added(model.raw_added, out);
  pack_added(model.normalized_added, out);
  pack(*model.tables, out);
  pack_characters(model, out);
}

std::optional<ByteLevelModel> unpack_model(Unpacker& in) {
  ByteLevelModel model;
  model.name = in.text();
  model.rules = in.text();
  const auto numbers = in.array<int32_t>();
  const auto byte_ids = in.array<int32_t>();
  model.dropped = in.text();
  model.mark = in.text();
  auto raw = unpack_added(in), normalized = unpack_added(in);
  model.tables = unpack_tables(in);
  std::optional<CharacterBorders> borders;
  if (!unpack_characters(in, model, borders)) return std::nullopt;
  if (numbers.size() != 2 || byte_ids.size() != model.byte_ids.size() || !raw || !normalized || !model.tables)
    return std::nullopt;
  model.ignore_merges = numbers[0] != 0;
  model.eod = numbers[1];
  std::copy(byte_ids.begin(), byte_ids.end(), model.byte_ids.begin());
  model.raw_added = std::move(*raw);
  model.normalized_added = std::move(*normalized);
  if (!ids_fit(model)) return std::nullopt;
  if (borders) {
    std::vector<AddedToken> whole = whole_tokens(*model.tables);
    if (!have_texts(whole)) return std::nullopt;
    borders->keep_whole(std::move(whole));
    model.borders = std::make_shared<const CharacterBorders>(std::move(*borders));
  }
  return model;
}

void pack(const UnigramModel& model, Packer& out) {
  if (!model.tables) fail(ErrorKind::kInternal, model.name, ": a model without tables cannot be kept");
  const UnigramRules& rules = model.rules;
  const UnigramTables& tables = *model.tables;
  out.add(model.name);
  const std::array<int32_t, 4> numbers = {static_cast<int32_t>(rules.sums), rules.unknown,
                                          rules.looks_up_runs, model.eod};
  out.add(std::span<const int32_t>(numbers));
  const auto score = std::bit_cast<uint64_t>(rules.unknown_score);
  out.add(std::span<const uint64_t>(&score, 1));
  out.add(std::span<const int32_t>(rules.bytes));
  out.add(rules.mark);
  pack_added(model.raw_added, out);
  pack_added(model.normalized_added, out);
  pack(tables.tokens, out);
  out.add(tables.trie.span());
  out.add(tables.scores.span());
  out.add(tables.borders.ascii.span());
  out.add(tables.borders.others.span());
  out.add(tables.hash);
}

std::optional<UnigramModel> unpack_unigram_model(Unpacker& in) {
  UnigramModel model;
  model.name = in.text();
  const auto numbers = in.array<int32_t>();
  const auto score = in.array<uint64_t>();
  const auto bytes = in.array<int32_t>();
  model.rules.mark = in.text();
  auto raw = unpack_added(in), normalized = unpack_added(in);
  auto tokens = unpack_texts(in);
  UnigramTables tables;
  tables.trie = in.shared<PrefixTrie::Node>();
  tables.scores = in.shared<uint64_t>();
  tables.borders.ascii = in.shared<uint64_t>();
  tables.borders.others = in.shared<uint64_t>();
  tables.hash = in.text();
  if (numbers.size() != 4 || score.size() != 1 || bytes.size() != model.rules.bytes.size() || !raw ||
      !normalized || !tokens)
    return std::nullopt;
  tables.tokens = std::move(*tokens);
  model.rules.sums = numbers[0] == 0 ? UnigramRules::Sums::kFloat : UnigramRules::Sums::kDouble;
  model.rules.unknown = numbers[1];
  model.rules.looks_up_runs = numbers[2] != 0;
  model.eod = numbers[3];
  model.rules.unknown_score = std::bit_cast<double>(score[0]);
  std::copy(bytes.begin(), bytes.end(), model.rules.bytes.begin());
  model.raw_added = std::move(*raw);
  model.normalized_added = std::move(*normalized);
  const size_t size = tables.tokens.size();
  const bool bytes_fit =
      std::all_of(bytes.begin(), bytes.end(), [size](int32_t id) { return fits_or_none(id, size); });
  if (!UnigramTables::fit(tables) || !fits(model.rules.unknown, size) || !bytes_fit ||
      !added_and_end_fit(model, size))
    return std::nullopt;
  model.tables = std::move(tables);
  return model;
}

void pack(const WordPieceModel& model, Packer& out) {
  if (!model.tables) fail(ErrorKind::kInternal, model.name, ": a model without tables cannot be kept");
  const WordPieceRules& rules = model.rules;
  out.add(model.name);
  out.add(rules.prefix);
  const std::array<int32_t, 6> numbers = {rules.cuts.at_spaces,
                                          rules.cuts.by_letters,
                                          static_cast<int32_t>(rules.cuts.punctuation),
                                          static_cast<int32_t>(rules.cuts.digits),
                                          rules.unknown,
                                          model.eod};
  out.add(std::span<const int32_t>(numbers));
  out.add(std::span<const uint64_t>(&rules.longest_word, 1));
  pack_added(model.raw_added, out);
  pack_added(model.normalized_added, out);
  pack(model.tables->tokens, out);
  out.add(model.tables->firsts.span());
  out.add(model.tables->others.span());
  out.add(model.tables->hash);
}

std::optional<WordPieceModel> unpack_wordpiece_model(Unpacker& in) {
  WordPieceModel model;
  WordPieceRules& rules = model.rules;
  model.name = in.text();
  rules.prefix = in.text();
  const auto numbers = in.array<int32_t>();
  const auto longest_word = in.array<uint64_t>();
  auto raw = unpack_added(in), normalized = unpack_added(in);
  auto tokens = unpack_texts(in);
  WordPieceTables tables;
  tables.firsts = in.shared<PrefixTrie::Node>();
  tables.others = in.shared<PrefixTrie::Node>();
  tables.hash = in.text();
  if (numbers.size() != 6 || longest_word.size() != 1 || !raw || !normalized || !tokens) return std::nullopt;
  rules.cuts = {.at_spaces = numbers[0] != 0,
                .by_letters = numbers[1] != 0,
                .punctuation = static_cast<WordCuts::Apart>(numbers[2]),
                .digits = static_cast<WordCuts::Apart>(numbers[3])};
  rules.unknown = numbers[4];
  rules.longest_word = longest_word[0];
  model.eod = numbers[5];
  model.raw_added = std::move(*raw);
  model.normalized_added = std::move(*normalized);
  tables.tokens = std::move(*tokens);
  const size_t size = tables.tokens.size();
  if (!fits(rules.unknown, size) || !added_and_end_fit(model, size) ||
      !PrefixTrie::fit(tables.firsts, size) || !PrefixTrie::fit(tables.others, size))
    return std::nullopt;
  model.tables = std::move(tables);
  return model;
}

namespace {

template <class Model>
using TokenizerOf =
    std::conditional_t<std::is_same_v<Model, ByteLevelModel>, ByteLevelTokenizer, ModelTokenizer<Model>>;

}  // namespace

std::unique_ptr<CoreTokenizer> make_core(CoreModel model) {
  const auto make = []<class Model>(Model& m) -> std::unique_ptr<CoreTokenizer> {
    return std::make_unique<TokenizerOf<Model>>(std::move(m));
  };
  return std::visit(make, model);
}

CoreModel copy_to_pack(CoreModel& model) {
  const auto copy = []<class Model>(Model& m) -> CoreModel {
    Model aside;
    const auto swap_lists = [&] {
      m.tokens.swap(aside.tokens);
      if constexpr (std::is_same_v<Model, UnigramModel>) m.scores.swap(aside.scores);
      if constexpr (std::is_same_v<Model, ByteLevelModel>) {
        m.merges.swap(aside.merges);
        m.given_ranks.swap(aside.given_ranks);
      }
    };
    swap_lists();
    CoreModel made = m;
    swap_lists();
    return made;
  };
  return std::visit(copy, model);
}

void pack(CoreModel model, const CoreTokenizer& core, Packer& out) {
  const auto kind = static_cast<int32_t>(model.index());
  out.add(std::span<const int32_t>(&kind, 1));
  const auto pack_one = [&]<class Model>(Model& m) {
    m.tables = static_cast<const TokenizerOf<Model>&>(core).tables();
    pack(m, out);
  };
  std::visit(pack_one, model);
}

std::optional<CoreModel> unpack_core(Unpacker& in) {
  const auto kind = in.array<int32_t>();
  if (kind.size() != 1) return std::nullopt;
  if (kind[0] == 0) return unpack_model(in);
  if (kind[0] == 1) return unpack_unigram_model(in);
  return unpack_wordpiece_model(in);
}

size_t packed_size(const CoreModel& model) {
  return std::visit([](const auto& m) { return m.tables->tokens.size(); }, model);
}

std::optional<CachedFile> kept_file(std::string_view kind, std::span<const std::string> files,
                                    std::span<const std::string> settings) {
  constexpr uint64_t kWorthKeeping = uint64_t{1} << 18;
  uint64_t bytes = 0;
  Sha256 hash;
  const auto add_size = [&](uint64_t size) { hash.update(&size, sizeof size); };
  for (const std::string& path : files) {
    if (file_exists(path) && !std::filesystem::is_regular_file(path)) return std::nullopt;
    const ReadableFile file(path);
    require_whole(path, file.size());
    add_size(file.size());
    file.stream([&](std::span<const std::byte> block) {
      stop_if_asked();
      hash.update(block.data(), block.size());
    });
    bytes += file.size();
  }
  for (const std::string& setting : settings) {
    add_size(setting.size());
    hash.update(setting.data(), setting.size());
  }
  if (bytes < kWorthKeeping) return std::nullopt;
  return std::optional<CachedFile>(std::in_place, kind, kPackedVersion, hash.hex());
}

std::unique_ptr<ByteLevelTokenizer> kept_tokenizer(const std::optional<CachedFile>& kept,
                                                   const FindPretokens& find,
                                                   const std::function<ByteLevelModel()>& read) {
  if (!kept) return std::make_unique<ByteLevelTokenizer>(read());
  if (const auto packed = kept->load()) {
    Unpacker in(packed->text(), packed);
    std::optional<ByteLevelModel> model = unpack_model(in);
    if (model && in.whole()) {
      model->find_pretokens = find;
      return std::make_unique<ByteLevelTokenizer>(std::move(*model));
    }
  }
  CoreModel model = read();
  CoreModel copy = copy_to_pack(model);
  auto tokenizer = std::make_unique<ByteLevelTokenizer>(std::get<ByteLevelModel>(std::move(model)));
  auto& packed = std::get<ByteLevelModel>(copy);
  packed.tables = tokenizer->tables();
  Packer out;
  pack(packed, out);
  kept->store(out.take());
  return tokenizer;
}

}  // namespace megalith
