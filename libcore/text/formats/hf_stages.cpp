#include "libcore/text/formats/hf_stages.h"

#include <limits>
#include <memory>

#include "libcore/base/base64.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/hash/sha256.h"
#include "libcore/text/patterns/pattern_parser.h"
#include "libcore/text/pretokenize/character_patterns.h"
#include "libcore/text/pretokenize/oniguruma_split.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

/// The stages of one kind, in order: none, one, or those of nested Sequences. `list` is the Sequence's
/// member.
void flatten(const std::optional<JsonCursor>& stage, const char* list, std::vector<JsonCursor>& out) {
  if (!stage) return;
  if (stage->type() != "Sequence") {
    out.push_back(*stage);
    return;
  }
  for (const JsonCursor& part : stage->at(list).list()) flatten(part, list, out);
}

/// No model needs more. Each stage may lengthen a text, and each pattern cuts within the pieces of those
/// before it.
constexpr size_t kMaxStages = 32;

std::vector<JsonCursor> stages(const JsonCursor& root, const char* member, const char* list) {
  std::vector<JsonCursor> out;
  flatten(root.find(member), list, out);
  if (out.size() > kMaxStages)
    fail(ErrorKind::kData, root.file(), ": ", member, " has ", out.size(), " stages, wanted at most ",
         kMaxStages);
  return out;
}

/// A "pattern" that is a text; a regular expression is rejected.
std::string literal_pattern(const JsonCursor& stage) {
  const JsonCursor pattern = stage.at("pattern");
  const auto text = pattern.find("String");
  if (!text || text->text().empty()) pattern.refuse("{\"String\": …} with a text");
  return text->text();
}

Normalizer::Step read_precompiled(const JsonCursor& stage) {
  const JsonCursor map = stage.at("precompiled_charsmap");
  const auto bytes = decode_base64(map.text());
  if (!bytes || bytes->empty()) map.refuse("a charsmap in base64");
  return Normalizer::Precompiled{std::make_shared<const Charsmap>(*bytes, stage.file()), sha256_hex(*bytes)};
}

std::string one_character(const JsonCursor& cursor) {
  const std::string& text = cursor.text();
  if (text.empty() || code_point_at(text).bytes != text.size()) cursor.refuse("one character");
  return text;
}

/// How BertPreTokenizer, Whitespace, WhitespaceSplit, Punctuation and Digits cut.
WordCuts read_word_cuts(const JsonCursor& stage) {
  using Apart = WordCuts::Apart;
  const std::string type = stage.type();
  if (type == "BertPreTokenizer") return {.at_spaces = true, .punctuation = Apart::kEach};
  if (type == "WhitespaceSplit") return {.at_spaces = true};
  if (type == "Whitespace") return {.at_spaces = true, .by_letters = true};
  if (type == "Digits")
    return {.digits = stage.flag("individual_digits", false) ? Apart::kEach : Apart::kRuns};
  if (type == "Punctuation") {
    const std::string behavior = stage.text("behavior", "Isolated");
    if (behavior == "Isolated") return {.punctuation = Apart::kEach};
    if (behavior == "Contiguous") return {.punctuation = Apart::kRuns};
    stage.refuse("\"behavior\": \"Isolated\" or \"Contiguous\"");
  }
  stage.refuse(
      "BertPreTokenizer, Whitespace, WhitespaceSplit, Punctuation, Digits, a Sequence of them, or null, with "
      "a WordPiece model");
}

/// The matches of an expression that cannot be compiled because it has `what`.
SplitPattern read_slow_expression(const JsonCursor& regex, bool of_bytes, const std::string& what) {
  const std::string& text = regex.text();
  try {
    SplitPattern pattern = of_bytes ? oniguruma_split_pattern_of_bytes(text) : oniguruma_split_pattern(text);
    log(regex.place(), " has ", what,
        ": the library Oniguruma matches it, slower than a compiled expression");
    return pattern;
  } catch (const UnsupportedPattern& refused) {
    regex.refuse(concat("an expression that Oniguruma takes (found: ", refused.what, ")"));
  } catch (const Error& error) {
    regex.refuse(concat("an expression without ", what, " (see docs/formats/tokenizer.md), or the library ",
                        "Oniguruma: ", error.what()));
  }
}

/// `of_bytes`: in a text that ByteLevel has written.
SplitPattern read_expression(const JsonCursor& regex, bool of_bytes) {
  try {
    return of_bytes ? split_pattern_of_bytes(regex.text()) : split_pattern(regex.text());
  } catch (const UnsupportedPattern& unsupported) {
    return read_slow_expression(regex, of_bytes, unsupported.what);
  }
}

/// A Replace of a normalizer. With " {2,}" files of unigram models join blanks.
Normalizer::Step read_replace(const JsonCursor& stage) {
  const std::string& to = stage.at("content").text();
  const auto regex = stage.at("pattern").find("Regex");
  if (!regex) return Normalizer::Replace{literal_pattern(stage), to};
  if (regex->text() == " {2,}") return Normalizer::JoinBlanks{to};
  return Normalizer::ReplaceMatches{regex->text(), to, matches_of(read_expression(*regex, false))};
}

using Use = SplitStage::Use;

Use read_behavior(const JsonCursor& stage, const std::string& behavior) {
  constexpr std::pair<const char*, Use> kUses[] = {{"Isolated", Use::kIsolated},
                                                   {"Removed", Use::kRemoved},
                                                   {"Contiguous", Use::kContiguous},
                                                   {"MergedWithPrevious", Use::kMergedWithPrevious},
                                                   {"MergedWithNext", Use::kMergedWithNext}};
  for (const auto& [name, use] : kUses)
    if (behavior == name) return use;
  stage.refuse(
      "\"behavior\": \"Isolated\", \"Removed\", \"Contiguous\", \"MergedWithPrevious\" or "
      "\"MergedWithNext\"");
}

/// A Split at a regular expression. `of_bytes`: in a text that ByteLevel has written.
SplitStage read_regex_split(const JsonCursor& stage, const JsonCursor& regex, bool of_bytes) {
  SplitStage made{.pattern = read_expression(regex, of_bytes),
                  .use = read_behavior(stage, stage.at("behavior").text()),
                  .invert = stage.flag("invert", false)};
  // Where the matches cover every text, nothing lies between them that could be removed.
  if (made.use == Use::kRemoved && made.invert && made.pattern.find) made.use = Use::kIsolated;
  return made;
}

/// A Split at a text.
SplitStage read_text_split(const JsonCursor& stage, const std::string& text) {
  const Use use = read_behavior(stage, stage.at("behavior").text());
  const bool invert = stage.flag("invert", false);
  constexpr std::pair<Use, TextCut> kCuts[] = {{Use::kIsolated, TextCut::kAround},
                                               {Use::kContiguous, TextCut::kAroundRuns},
                                               {Use::kMergedWithPrevious, TextCut::kAfter},
                                               {Use::kMergedWithNext, TextCut::kBefore}};
  for (const auto& [named, cut] : kCuts)
    if (use == named && !invert) return {.pattern = text_pattern(text, cut)};
  return {.pattern = text_pattern(text, TextCut::kAround), .use = use, .invert = invert};
}

/// Whether the normalizer leaves no `text`, as with Gemma, whose normalizer replaces all blanks and whose
/// pre-tokenizer then splits at blanks.
bool is_replaced(const JsonCursor& root, const std::string& text) {
  const Normalizer normalizer = read_hf_normalizer(root);
  if (normalizer.empty()) return false;
  const auto* const last = std::get_if<Normalizer::Replace>(&normalizer.steps().back());
  return last && last->from == text && text.size() == 1 && last->to.find(text) == std::string::npos;
}

void read_split(const JsonCursor& root, const JsonCursor& stage, HfPretokenizer& out) {
  const JsonCursor pattern = stage.at("pattern");
  if (const auto regex = pattern.find("Regex")) {
    out.stages.emplace_back(read_regex_split(stage, *regex, out.byte_level));
    return;
  }
  const std::string text = literal_pattern(stage);
  if (out.byte_level) pattern.refuse("{\"Regex\": …} after ByteLevel");
  SplitStage made = read_text_split(stage, text);
  if (!is_replaced(root, text)) out.stages.emplace_back(std::move(made));
}

/// ByteLevel puts a blank before each piece of a text. Where there is one piece, that is one before the text.
void read_byte_level(const JsonCursor& stage, bool is_first, HfPretokenizer& out) {
  if (stage.flag("add_prefix_space", true)) {
    if (is_first)
      out.metaspace = Metaspace{.mark = " ", .split = false};
    else
      out.stages.emplace_back(BlankStage{});
  }
  if (stage.flag("use_regex", true)) out.stages.emplace_back(SplitStage{gpt2_split_pattern()});
  out.byte_level = true;
}

SplitPattern read_digits(const JsonCursor& stage, bool of_bytes) {
  const bool individual = stage.flag("individual_digits", false);
  return of_bytes ? digits_pattern_of_bytes(individual) : digits_pattern(individual);
}

SplitStage read_punctuation(const JsonCursor& stage) {
  const Use use = read_behavior(stage, stage.text("behavior", "Isolated"));
  if (use == Use::kContiguous) return {punctuation_pattern(false)};
  return {.pattern = punctuation_pattern(true), .use = use};
}

/// Stages that remove white space, or a character.
bool read_removal(const JsonCursor& stage, const std::string& type, HfPretokenizer& out) {
  const auto remove = [&](SplitPattern pattern) {
    out.stages.emplace_back(SplitStage{.pattern = std::move(pattern), .use = Use::kRemoved});
  };
  if (type == "CharDelimiterSplit") {
    remove(text_pattern(one_character(stage.at("delimiter")), TextCut::kAround));
    return true;
  }
  if (type != "WhitespaceSplit" && type != "Whitespace" && type != "BertPreTokenizer") return false;
  remove(spaces_pattern());
  if (type == "Whitespace") out.stages.emplace_back(SplitStage{words_pattern()});
  if (type == "BertPreTokenizer") out.stages.emplace_back(SplitStage{punctuation_pattern(true)});
  return true;
}

Metaspace read_metaspace(const JsonCursor& stage) {
  Metaspace out;
  out.mark = one_character(stage.at("replacement"));
  // Files of tokenizers until 0.15 have "add_prefix_space".
  const bool prefix = stage.flag("add_prefix_space", true);
  const std::string scheme = stage.text("prepend_scheme", prefix ? "always" : "never");
  if (scheme == "always" && prefix)
    out.prepend = Metaspace::Prepend::kAlways;
  else if (scheme == "first" && prefix)
    out.prepend = Metaspace::Prepend::kFirst;
  else if (scheme == "never")
    out.prepend = Metaspace::Prepend::kNever;
  else
    stage.refuse("\"prepend_scheme\": \"always\", \"first\" or \"never\"");
  out.split = stage.flag("split", true);
  return out;
}

int32_t read_id(const JsonCursor& cursor) {
  const int64_t id = cursor.integer();
  if (id < 0 || id > std::numeric_limits<int32_t>::max()) cursor.refuse("a token's id");
  return static_cast<int32_t>(id);
}

/// {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens": {"<s>": {"ids":
/// [1]}}}
HfTemplate read_template(const JsonCursor& stage) {
  HfTemplate out;
  int texts = 0;
  const JsonCursor single = stage.at("single");
  for (const JsonCursor& piece : single.list()) {
    if (const auto text = piece.find("Sequence")) {
      if (text->at("id").text() != "A") piece.refuse("\"Sequence\" \"A\"");
      ++texts;
      continue;
    }
    const auto token = piece.find("SpecialToken");
    if (!token) piece.refuse("\"Sequence\" or \"SpecialToken\"");
    auto& side = texts == 0 ? out.before : out.after;
    const std::string& name = token->at("id").text();
    for (const JsonCursor& id : stage.at("special_tokens").at(name.c_str()).at("ids").list())
      side.push_back(read_id(id));
  }
  if (texts != 1) single.refuse("the text once");
  return out;
}

/// BERT's: "cls" and "sep" are [token, id].
HfTemplate read_cls_sep(const JsonCursor& stage) {
  const auto id = [&](const char* key) {
    const std::vector<JsonCursor> pair = stage.at(key).list();
    if (pair.size() != 2) stage.at(key).refuse("[token, id]");
    return read_id(pair[1]);
  };
  return {{id("cls")}, {id("sep")}};
}

TokenDecoder::Step read_strip(const JsonCursor& stage) {
  const auto count = [&](const char* key) {
    const int64_t n = stage.at(key).integer();
    if (n < 0) stage.at(key).refuse("a number of characters");
    return static_cast<size_t>(n);
  };
  return TokenDecoder::Strip{one_character(stage.at("content")), count("start"), count("stop")};
}

TokenDecoder::Step read_decoder_step(const JsonCursor& stage) {
  const std::string type = stage.type();
  if (type == "ByteLevel") return TokenDecoder::ByteLevel{};
  if (type == "ByteFallback") return TokenDecoder::ByteFallback{};
  if (type == "Fuse") return TokenDecoder::Fuse{};
  if (type == "Replace") return TokenDecoder::Replace{literal_pattern(stage), stage.at("content").text()};
  if (type == "Strip") return read_strip(stage);
  if (type == "WordPiece")
    return TokenDecoder::WordPiece{stage.at("prefix").text(), stage.must_flag("cleanup")};
  if (type == "Metaspace") {
    const Metaspace metaspace = read_metaspace(stage);
    return TokenDecoder::Metaspace{metaspace.mark, metaspace.prepend != Metaspace::Prepend::kNever};
  }
  stage.refuse("ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, WordPiece, or a Sequence of them");
}

/// Without "strip_accents" accents are stripped if letters become lower case.
Normalizer::Step read_bert_normalizer(const JsonCursor& stage) {
  const bool lower = stage.must_flag("lowercase");
  return BertNormal({.clean = stage.must_flag("clean_text"),
                     .space_ideographs = stage.must_flag("handle_chinese_chars"),
                     .strip_accents = stage.flag("strip_accents", lower),
                     .lower = lower});
}

Normalizer::Step read_normalizer_step(const JsonCursor& stage) {
  const std::string type = stage.type();
  if (type == "NFC") return Normalizer::Nfc{};
  if (type == "NFKC") return Normalizer::Nfkc{};
  if (type == "NFD") return Normalizer::Decompose{Decomposition::kNfd};
  if (type == "NFKD") return Normalizer::Decompose{Decomposition::kNfkd};
  if (type == "StripAccents") return Normalizer::StripAccents{};
  if (type == "Lowercase") return Normalizer::Lowercase{};
  if (type == "Nmt") return Normalizer::Nmt{};
  if (type == "Prepend") return Normalizer::Prepend{stage.at("prepend").text()};
  if (type == "Replace") return read_replace(stage);
  if (type == "Strip")
    return Normalizer::Strip{stage.must_flag("strip_left"), stage.must_flag("strip_right")};
  if (type == "Precompiled") return read_precompiled(stage);
  if (type == "BertNormalizer") return read_bert_normalizer(stage);
  stage.refuse(
      "NFC, NFD, NFKC, NFKD, StripAccents, Lowercase, Nmt, Prepend, Replace, Strip, Precompiled, "
      "BertNormalizer, a Sequence of them, or null");
}

/// The Metaspace with which the pre-tokenizer ends.
Metaspace read_last_metaspace(const JsonCursor& stage, bool after_whitespace_split) {
  Metaspace metaspace = read_metaspace(stage);
  metaspace.words = after_whitespace_split;
  if (metaspace.words && (!metaspace.split || metaspace.prepend != Metaspace::Prepend::kAlways))
    stage.refuse("\"prepend_scheme\": \"always\" with \"split\", after WhitespaceSplit");
  return metaspace;
}

}  // namespace

WordCuts read_hf_word_cuts(const JsonCursor& root) {
  WordCuts cuts;
  for (const JsonCursor& stage : stages(root, "pre_tokenizer", "pretokenizers"))
    cuts.add(read_word_cuts(stage));
  return cuts;
}

Normalizer read_hf_normalizer(const JsonCursor& root) {
  std::vector<Normalizer::Step> steps;
  for (const JsonCursor& stage : stages(root, "normalizer", "normalizers")) {
    steps.push_back(read_normalizer_step(stage));
  }
  return Normalizer(std::move(steps));
}

HfPretokenizer read_hf_pretokenizer(const JsonCursor& root) {
  HfPretokenizer out;
  const std::vector<JsonCursor> all = stages(root, "pre_tokenizer", "pretokenizers");
  const bool splits_words =
      all.size() == 2 && all[0].type() == "WhitespaceSplit" && all[1].type() == "Metaspace";
  for (const JsonCursor& stage : all) {
    const std::string type = stage.type();
    if (type == "Split")
      read_split(root, stage, out);
    else if (type == "Digits")
      out.stages.emplace_back(SplitStage{read_digits(stage, out.byte_level)});
    else if (out.byte_level)
      stage.refuse("Split or Digits after ByteLevel");
    else if (type == "Punctuation")
      out.stages.emplace_back(read_punctuation(stage));
    else if (type == "ByteLevel")
      read_byte_level(stage, &stage == all.data(), out);
    else if (type == "Metaspace" && all.size() == (splits_words ? 2U : 1U))
      out.metaspace = read_last_metaspace(stage, splits_words);
    else if (!splits_words && !read_removal(stage, type, out))
      stage.refuse(
          "ByteLevel, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer, "
          "CharDelimiterSplit, a Sequence of them, Metaspace alone or after WhitespaceSplit, or null");
  }
  return out;
}

HfTemplate read_hf_post_processor(const JsonCursor& root) {
  HfTemplate out;
  for (const JsonCursor& stage : stages(root, "post_processor", "processors")) {
    const std::string type = stage.type();
    HfTemplate next;
    if (type == "TemplateProcessing")
      next = read_template(stage);
    else if (type == "BertProcessing" || type == "RobertaProcessing")
      next = read_cls_sep(stage);
    else if (type != "ByteLevel")
      stage.refuse(
          "ByteLevel, TemplateProcessing, BertProcessing, RobertaProcessing, a Sequence of them, or null");
    out.before.insert(out.before.begin(), next.before.begin(), next.before.end());
    out.after.insert(out.after.end(), next.after.begin(), next.after.end());
  }
  return out;
}

TokenDecoder read_hf_decoder(const JsonCursor& root) {
  std::vector<TokenDecoder::Step> steps;
  for (const JsonCursor& stage : stages(root, "decoder", "decoders"))
    steps.push_back(read_decoder_step(stage));
  // An empty Sequence joins tokens directly, so it needs a step: without a decoder, blanks would join them.
  if (steps.empty() && root.find("decoder")) steps.emplace_back(TokenDecoder::Fuse{});
  return TokenDecoder(std::move(steps));
}

}  // namespace megalith
