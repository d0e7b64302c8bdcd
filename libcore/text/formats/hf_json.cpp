#include "libcore/text/formats/hf_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/text/formats/hf_stages.h"
#include "libcore/text/formats/hf_tokenizer.h"
#include "libcore/text/formats/json_cursor.h"
#include "libcore/text/formats/packed_model.h"
#include "libcore/text/formats/vocabulary.h"
#include "libcore/text/unicode/python_text.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

constexpr const char* kEndOfText = "<|endoftext|>";

/// All members that tokenizers 0.22 writes.
constexpr std::array kMembers = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                 "pre_tokenizer", "post_processor", "decoder", "model"};
constexpr std::array kWordPieceMembers = {"type", "unk_token", "continuing_subword_prefix",
                                          "max_input_chars_per_word", "vocab"};
constexpr std::array kUnigramMembers = {"type", "unk_id", "vocab", "byte_fallback"};
constexpr std::array kModelMembers = {"type",
                                      "dropout",
                                      "unk_token",
                                      "continuing_subword_prefix",
                                      "end_of_word_suffix",
                                      "fuse_unk",
                                      "byte_fallback",
                                      "ignore_merges",
                                      "vocab",
                                      "merges"};

/// The token that ends a document: "eos_token" of the tokenizer_config.json next to the file, or else the
/// usual text.
std::string end_of_text(const std::string& tokenizer_json) {
  const auto path = std::filesystem::path(tokenizer_json).parent_path() / "tokenizer_config.json";
  if (!file_exists(path.string())) return kEndOfText;
  const Json config = Json::parse(read_own_file(path.string()), path.string());
  const Json* token = config.find("eos_token");
  if (token && token->is_object()) token = token->find("content");
  return token && token->is_string() ? token->as_string() : kEndOfText;
}

void check_model(const JsonCursor& model) {
  model.only(kModelMembers);
  // Files of tokenizers before 0.5 have no "type".
  if (const auto type = model.find("type"); type && type->text() != "BPE")
    type->refuse("\"BPE\", \"Unigram\" or \"WordPiece\"");
  if (const auto dropout = model.find("dropout"))
    if (!dropout->json().is_number() || dropout->json().as_double() != 0)
      dropout->refuse("none (null): ids would be random");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const auto affix = model.find(key); affix && !affix->text().empty()) affix->refuse("none (null)");
}

/// A merge is "left right" (until tokenizers 0.19) or ["left", "right"]. Nothing for other values.
std::optional<Vocabulary::Sides> sides_of(const Json& merge) {
  if (merge.is_array()) {
    const Json::Array& pair = merge.as_array();
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string()) return std::nullopt;
    return Vocabulary::Sides{pair[0].as_string(), pair[1].as_string()};
  }
  if (!merge.is_string()) return std::nullopt;
  const std::string_view both = merge.as_string();
  const size_t blank = both.find(' ');
  if (blank == std::string_view::npos || both.find(' ', blank + 1) != std::string_view::npos)
    return std::nullopt;
  return Vocabulary::Sides{both.substr(0, blank), both.substr(blank + 1)};
}

std::vector<BytePairEncoder::Merge> read_merges(const JsonCursor& merges, const Vocabulary& vocabulary) {
  if (!merges.json().is_array()) merges.refuse("a list");
  const Json::Array& all = merges.json().as_array();
  const auto where = [&](size_t i) { return concat(merges.file(), ": model.merges[", i, "]"); };
  const auto sides = [&](size_t i) {
    const auto of = sides_of(all[i]);
    if (!of)
      fail(ErrorKind::kData, where(i), " is ", all[i].dump(),
           ", wanted two tokens, \"left right\" or [\"left\", \"right\"]");
    return *of;
  };
  return vocabulary.merges(all.size(), sides, where);
}

void read_added(const JsonCursor& list, AddedTokenList& added) {
  std::string odd;
  int odds = 0;
  for (const JsonCursor& entry : list.list()) {
    const std::string& text = entry.at("content").text();
    if (text.empty()) entry.at("content").refuse("a text");
    const int64_t written = entry.at("id").integer();
    entry.must_flag("special");  // must exist, but has no effect here
    const int32_t id = added.add({.text = text,
                                  .takes_space_before = entry.must_flag("lstrip"),
                                  .takes_space_after = entry.must_flag("rstrip"),
                                  .only_alone = entry.must_flag("single_word")},
                                 entry.must_flag("normalized"));
    if (id != written && ++odds == 1)
      odd = concat(quote(text), " has id ", written, " there; Hugging Face takes ", id, " for it");
  }
  if (odds > 0)
    warn(list.file(), ": added token ", odd, ", and so does Megalith",
         odds > 1 ? concat("; ", odds - 1, " more are like it") : "");
}

/// `texts`: those of all ids.
CharacterIds::Unknown read_unknown(const JsonCursor& model, const Vocabulary& vocabulary,
                                   const std::vector<std::string>& texts) {
  CharacterIds::Unknown out;
  if (model.flag("byte_fallback", false)) out.bytes = CharacterIds::Unknown::bytes_of(texts);
  out.fuse = model.flag("fuse_unk", false);
  const auto token = model.find("unk_token");
  if (!token) return out;
  out.id = vocabulary.find(token->text());
  if (!out.id) token->refuse("a token of the vocabulary");
  return out;
}

/// The borders at which a text without other pretokens may be cut: merging gives the same ids for the parts.
/// Null if ids depend on more than the characters on both sides of a border: if whole pretokens may be
/// tokens, if the unknown token or one of a byte is merged, or if only some bytes have tokens.
SharedBorders borders_of(const ByteLevelModel& model) {
  const CharacterIds& characters = *model.characters;
  const CharacterIds::Unknown& unknown = characters.unknown();
  std::vector<bool> is_special(model.tokens.size());
  if (unknown.id) is_special[static_cast<size_t>(*unknown.id)] = true;
  for (const int32_t id : unknown.bytes)
    if (id >= 0) is_special[static_cast<size_t>(id)] = true;
  const bool merges_special =
      std::any_of(model.merges.begin(), model.merges.end(), [&](const BytePairEncoder::Merge& merge) {
        return is_special[static_cast<size_t>(merge.left)] || is_special[static_cast<size_t>(merge.right)];
      });
  if (model.ignore_merges || characters.has_some_bytes() || merges_special) return nullptr;
  return std::make_shared<const CharacterBorders>(model.tokens, model.merges, characters);
}

/// The character that stands for each blank of a normalized text, because the normalizer's last step replaces
/// all blanks; empty if there is none.
std::string mark_of_blanks(const Normalizer& normalizer) {
  if (normalizer.empty()) return {};
  const auto* const last = std::get_if<Normalizer::Replace>(&normalizer.steps().back());
  if (!last || last->from != " " || last->to.empty() || last->to == " ") return {};
  return code_point_at(last->to).bytes == last->to.size() ? last->to : std::string();
}

/// Makes the mark that stands for blanks a blank, if no token has one: a byte in place of U+2581's three.
/// Then twice as many words are short pieces of ASCII, and texts, in which blanks stay, need not be
/// rewritten.
void shorten_marks(const std::string& mark, ByteLevelModel& model) {
  const auto has_blank = [](const std::string& text) { return text.find(' ') != std::string::npos; };
  const auto& tokens = model.tokens;
  if (mark.empty() || !model.normalized_added.empty() ||
      std::find(tokens.begin(), tokens.end(), mark) == tokens.end() ||
      std::any_of(tokens.begin(), tokens.end(), has_blank))
    return;
  for (std::string& token : model.tokens)
    if (token.find(mark) != std::string::npos) token = replaced(token, mark, " ");
  model.mark = mark;
}

/// Whether the file says nothing about pretokens, so that a text is one of them.
bool has_no_pretokens(const HfPretokenizer& pretokenizer) {
  return pretokenizer.stages.empty() && !(pretokenizer.metaspace && pretokenizer.metaspace->split);
}

/// All stages that cut a text.
std::vector<CutStage> cut_stages(const HfPretokenizer& pretokenizer) {
  std::vector<CutStage> stages = pretokenizer.stages;
  if (pretokenizer.metaspace && pretokenizer.metaspace->split)
    stages.emplace_back(SplitStage{mark_pattern(pretokenizer.metaspace->mark, true)});
  return stages;
}

/// See ByteLevelModel. Only for pretokens that end at borders or marks, nothing before them decides where
/// they end.
std::optional<size_t> look_ahead(const HfPretokenizer& pretokenizer, const ByteLevelModel& model) {
  constexpr size_t kLongestCharacter = 4;
  if (pretokenizer.byte_level || model.ignore_merges || !pretokenizer.stages.empty()) return std::nullopt;
  return model.borders ? model.borders->look_ahead() : kLongestCharacter;
}

bool splits_characters(const HfPretokenizer& pretokenizer) {
  return std::any_of(pretokenizer.stages.begin(), pretokenizer.stages.end(), [](const CutStage& stage) {
    const auto* const split = std::get_if<SplitStage>(&stage);
    return split && split->pattern.of_bytes;
  });
}

/// Fills what says how the model's texts are cut.
void fill_pretokens(const HfPretokenizer& pretokenizer, ByteLevelModel& out) {
  std::vector<CutStage> stages = cut_stages(pretokenizer);
  if (auto patterns = plain_patterns(stages))
    out.find_pretokens = megalith::pretokenizer(std::move(*patterns));
  else
    out.cutter = std::make_shared<const TextCutter>(std::move(stages));
  out.look_ahead = look_ahead(pretokenizer, out);
  out.splits_characters = splits_characters(pretokenizer);
}

/// Fills what a model of bytes needs of its vocabulary. A byte without a token gives "unk_token", or nothing.
void fill_bytes(const JsonCursor& model, const Vocabulary& vocabulary, ByteLevelModel& out) {
  std::optional<int32_t> unknown;
  if (const auto token = model.find("unk_token")) unknown = vocabulary.find(token->text());
  vocabulary.fill(out, unknown);
  if (!unknown || std::find(out.byte_ids.begin(), out.byte_ids.end(), *unknown) == out.byte_ids.end()) return;
  out.rules += concat("; unknown ", *unknown);
  if (model.flag("fuse_unk", false)) model.at("fuse_unk").refuse("false where bytes have no token");
  if (model.flag("byte_fallback", false)) model.at("byte_fallback").refuse("false where bytes have no token");
}

std::string names(const HfPretokenizer& pretokenizer) {
  std::vector<std::string> names;
  for (const CutStage& stage : cut_stages(pretokenizer)) names.push_back(name_of(stage));
  return join(names, "; ");
}

/// Whether a step may take the beginning of a text away: it removes a character there, or replaces several,
/// whose place is then that of the last of them. `mark`: of the Metaspace that follows.
bool may_take_beginning(const Normalizer::Step& step, const std::string& mark) {
  if (const auto* const strip = std::get_if<Normalizer::Strip>(&step)) return strip->left;
  if (const auto* const replace = std::get_if<Normalizer::Replace>(&step))
    return replace->to.empty() || code_point_at(replace->from).bytes < replace->from.size();
  // A text that begins with a mark, which a blank becomes, gets no other.
  if (const auto* const join = std::get_if<Normalizer::JoinBlanks>(&step))
    return !join->to.starts_with(' ') && !join->to.starts_with(mark);
  if (const auto* const bert = std::get_if<BertNormal>(&step))
    return bert->rules().clean || bert->rules().strip_accents;
  return std::holds_alternative<Normalizer::ReplaceMatches>(step) ||
         std::holds_alternative<Normalizer::StripAccents>(step) ||
         std::holds_alternative<Normalizer::Nmt>(step);
}

/// Refuses what depends on where the beginning of a text was before it was normalized: a mark is put before
/// the first word of a text only if that word begins there.
void check_first_word(const JsonCursor& root, const HfParts& parts) {
  if (!parts.metaspace || parts.metaspace->prepend != Metaspace::Prepend::kFirst) return;
  const auto& steps = parts.normalizer.steps();
  if (std::any_of(steps.begin(), steps.end(), [&](const Normalizer::Step& step) {
        return may_take_beginning(step, parts.metaspace->mark);
      }))
    root.at("pre_tokenizer")
        .refuse(
            "\"prepend_scheme\": \"always\" or \"never\" after a normalizer that removes characters or "
            "replaces several together");
}

/// Reads everything but the model.
HfParts read_stages(const JsonCursor& root, const HfPretokenizer& pretokenizer, bool around) {
  HfParts parts;
  parts.normalizer = read_hf_normalizer(root);
  parts.metaspace = pretokenizer.metaspace;
  check_first_word(root, parts);
  parts.decoder = read_hf_decoder(root);
  HfTemplate stage = read_hf_post_processor(root);
  if (around) parts.around = std::move(stage);
  return parts;
}

struct Source {
  std::string path;  // path of the tokenizer.json
  const HfSettings& settings;
  bool in_folder;  // whether the user named the folder: nobody would then write to a FIFO at this path

  std::string text() const { return in_folder ? read_own_file(path) : read_file(path); }
  std::string end() const { return settings.eod.empty() ? end_of_text(path) : settings.eod; }
};

/// Reads the added tokens into `model`, and the end of a document. Returns the texts of all ids.
std::vector<std::string> read_added_and_end(const Source& source, const JsonCursor& root,
                                            Vocabulary& vocabulary, TokenizerModel& model) {
  AddedTokenList added(vocabulary, model);
  if (const auto list = root.find("added_tokens")) read_added(*list, added);
  for (const std::string& text : source.settings.special) added.add_special(text);
  model.name = "HuggingFaceTokenizer";
  model.eod = vocabulary.find(source.end()).value_or(-1);
  if (model.eod < 0 && !source.settings.eod.empty())
    fail(ErrorKind::kData, source.path, ": no token ", quote(source.settings.eod),
         ", which --eod-token names");
  return vocabulary.texts();
}

ByteLevelModel read_bpe(const Source& source, const JsonCursor& root, const HfPretokenizer& pretokenizer,
                        TokenTexts& all_texts) {
  const JsonCursor model = root.at("model");
  check_model(model);
  Vocabulary vocabulary(model.at("vocab").json(), source.path);
  ByteLevelModel out;
  out.merges = read_merges(model.at("merges"), vocabulary);
  out.ignore_merges = model.flag("ignore_merges", false);
  std::vector<std::string> texts = read_added_and_end(source, root, vocabulary, out);
  all_texts = TokenTexts(texts);
  out.rules = names(pretokenizer);
  if (pretokenizer.byte_level) {
    fill_bytes(model, vocabulary, out);
  } else {
    out.tokens = std::move(texts);
    const CharacterIds::Unknown unknown = read_unknown(model, vocabulary, out.tokens);
    if (has_no_pretokens(pretokenizer) && !pretokenizer.metaspace)
      shorten_marks(mark_of_blanks(read_hf_normalizer(root)), out);
    out.characters.emplace(out.tokens, unknown);
    out.rules = concat("characters, unknown ", unknown.id.value_or(-1), unknown.fuse ? " fused" : "",
                       model.flag("byte_fallback", false) ? " or bytes" : "", out.rules.empty() ? "" : "; ",
                       out.rules);
  }
  if (!pretokenizer.byte_level && has_no_pretokens(pretokenizer)) out.borders = borders_of(out);
  fill_pretokens(pretokenizer, out);
  return out;
}

/// Each token is [text, score].
void read_scored_tokens(const JsonCursor& vocab, UnigramModel& out) {
  for (const JsonCursor& token : vocab.list()) {
    const std::vector<JsonCursor> pair = token.list();
    if (pair.size() != 2 || !pair[1].json().is_number()) token.refuse("[token, score]");
    out.tokens.push_back(pair[0].text());
    out.scores.push_back(pair[1].json().as_double());
    if (!std::isfinite(out.scores.back())) pair[1].refuse("a finite number");
  }
}

UnigramRules read_unigram_rules(const JsonCursor& model, const HfPretokenizer& pretokenizer,
                                const UnigramModel& tokens) {
  constexpr double kPenalty = 10;  // of an unknown character, below the worst score
  UnigramRules rules{.sums = UnigramRules::Sums::kDouble, .looks_up_runs = true, .mark = {}};
  const JsonCursor unknown = model.at("unk_id");
  if (!unknown.json().is_int() || unknown.integer() < 0 ||
      unknown.integer() >= static_cast<int64_t>(tokens.tokens.size()))
    unknown.refuse("the id of a token: texts may have characters that no token has");
  rules.unknown = static_cast<int32_t>(unknown.integer());
  rules.unknown_score = *std::min_element(tokens.scores.begin(), tokens.scores.end()) - kPenalty;
  if (model.flag("byte_fallback", false)) rules.bytes = CharacterIds::Unknown::bytes_of(tokens.tokens);
  if (pretokenizer.metaspace && pretokenizer.metaspace->split) rules.mark = pretokenizer.metaspace->mark;
  return rules;
}

UnigramModel read_unigram(const Source& source, const JsonCursor& root, const HfPretokenizer& pretokenizer,
                          TokenTexts& all_texts) {
  const JsonCursor model = root.at("model");
  model.only(kUnigramMembers);
  if (pretokenizer.byte_level || !pretokenizer.stages.empty())
    root.at("pre_tokenizer").refuse("Metaspace, or null, with a Unigram model");
  UnigramModel out;
  read_scored_tokens(model.at("vocab"), out);
  out.rules = read_unigram_rules(model, pretokenizer, out);
  Vocabulary vocabulary(out.tokens, source.path);
  const std::vector<std::string> texts = read_added_and_end(source, root, vocabulary, out);
  out.tokens.resize(texts.size());  // added tokens are not found by the model
  out.scores.resize(texts.size());
  all_texts = TokenTexts(texts);
  return out;
}

WordPieceModel read_wordpiece(const Source& source, const JsonCursor& root, TokenTexts& all_texts) {
  const JsonCursor model = root.at("model");
  model.only(kWordPieceMembers);
  Vocabulary vocabulary(model.at("vocab").json(), source.path);
  WordPieceModel out;
  out.rules.cuts = read_hf_word_cuts(root);
  out.rules.prefix = model.at("continuing_subword_prefix").text();
  const JsonCursor longest = model.at("max_input_chars_per_word"), unknown = model.at("unk_token");
  if (longest.integer() < 0) longest.refuse("a number of characters");
  out.rules.longest_word = static_cast<uint64_t>(longest.integer());
  const auto id = vocabulary.find(unknown.text());
  if (!id) unknown.refuse("a token of the vocabulary");
  out.rules.unknown = *id;
  out.tokens = vocabulary.texts();
  const std::vector<std::string> texts = read_added_and_end(source, root, vocabulary, out);
  out.tokens.resize(texts.size());  // added tokens are not found by the model
  all_texts = TokenTexts(texts);
  return out;
}

bool has_model(const JsonCursor& root, std::string_view type) {
  const auto named = root.at("model").find("type");
  return named && named->text() == type;
}

CoreModel read_model(const Source& source, const JsonCursor& root, const HfPretokenizer& pretokenizer,
                     TokenTexts& texts) {
  if (has_model(root, "WordPiece")) return read_wordpiece(source, root, texts);
  if (has_model(root, "Unigram")) return read_unigram(source, root, pretokenizer, texts);
  return read_bpe(source, root, pretokenizer, texts);
}

/// Whether a ByteLevelTokenizer alone does everything that the file asks for.
bool needs_only_its_model(const HfParts& parts) {
  const auto& steps = parts.decoder.steps();
  return std::holds_alternative<ByteLevelModel>(parts.model) && parts.normalizer.empty() &&
         !parts.metaspace && parts.around.before.empty() && parts.around.after.empty() && steps.size() == 1 &&
         std::holds_alternative<TokenDecoder::ByteLevel>(steps[0]);
}

struct Made {
  std::unique_ptr<Tokenizer> tokenizer;
  const CoreTokenizer* core;
};

Made make(HfParts parts) {
  if (needs_only_its_model(parts)) {
    std::unique_ptr<CoreTokenizer> tokenizer = make_core(std::move(parts.model));
    const CoreTokenizer* const core = tokenizer.get();
    return {std::move(tokenizer), core};
  }
  auto tokenizer = std::make_unique<HfTokenizer>(std::move(parts));
  const CoreTokenizer* const core = &tokenizer->core();
  return {std::move(tokenizer), core};
}

// The following store what later runs need of a tokenizer.json, so that they need not parse it:
// the stages around the model as JSON, the texts of the tokens, and the model.

std::string pack_parts(const Json& root, const TokenTexts& texts, CoreModel model,
                       const CoreTokenizer& core) {
  Json stages = Json::object();
  for (const char* key : {"normalizer", "pre_tokenizer", "post_processor", "decoder"})
    if (const Json* stage = root.find(key)) stages.set(key, *stage);
  Packer out;
  out.add(stages.dump());
  pack(texts, out);
  pack(std::move(model), core, out);
  return out.take();
}

std::optional<HfParts> unpack_parts(Unpacker in, const Source& source) {
  const std::string_view stages = in.text();
  std::optional<TokenTexts> texts = unpack_texts(in);
  std::optional<CoreModel> model = unpack_core(in);
  if (!texts || !model || !in.whole() || texts->size() != packed_size(*model)) return std::nullopt;
  const Json json = Json::parse(stages, source.path);
  const JsonCursor root(json, source.path);
  // A WordPiece model holds its pre-tokenizer.
  const HfPretokenizer pretokenizer =
      std::holds_alternative<WordPieceModel>(*model) ? HfPretokenizer() : read_hf_pretokenizer(root);
  HfParts parts = read_stages(root, pretokenizer, source.settings.around);
  parts.model = std::move(*model);
  if (auto* const byte_level = std::get_if<ByteLevelModel>(&parts.model))
    fill_pretokens(pretokenizer, *byte_level);
  parts.texts = std::move(*texts);
  return parts;
}

std::unique_ptr<Tokenizer> read_tokenizer(const Source& source) {
  const std::string files[] = {source.path};
  std::vector<std::string> words = source.settings.special;
  words.push_back(source.end());
  const std::optional<CachedFile> kept = kept_file("hf", files, words);
  if (kept)
    if (const auto packed = kept->load())
      if (std::optional<HfParts> parts = unpack_parts({packed->text(), packed}, source))
        return make(std::move(*parts)).tokenizer;
  const Json json = Json::parse(source.text(), source.path);
  const JsonCursor root(json, source.path);
  if (!json.is_object()) root.refuse("an object");
  root.only(kMembers);
  root.at("pre_tokenizer");
  const HfPretokenizer pretokenizer =
      has_model(root, "WordPiece") ? HfPretokenizer() : read_hf_pretokenizer(root);
  HfParts parts = read_stages(root, pretokenizer, source.settings.around);
  parts.model = read_model(source, root, pretokenizer, parts.texts);
  if (!kept) return make(std::move(parts)).tokenizer;
  const TokenTexts texts = parts.texts;
  CoreModel model = copy_to_pack(parts.model);
  Made made = make(std::move(parts));
  kept->store(pack_parts(json, texts, std::move(model), *made.core));
  return std::move(made.tokenizer);
}

}  // namespace

std::unique_ptr<Tokenizer> read_hf_tokenizer(const std::string& path, const HfSettings& settings) {
  const bool is_folder = std::filesystem::is_directory(path);
  return read_tokenizer(
      {is_folder ? (std::filesystem::path(path) / "tokenizer.json").string() : path, settings, is_folder});
}

}  // namespace megalith
