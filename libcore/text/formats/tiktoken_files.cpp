#include "libcore/text/formats/tiktoken_files.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "libcore/base/base64.h"
#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/text/formats/json_cursor.h"
#include "libcore/text/formats/packed_model.h"
#include "libcore/text/patterns/pattern_parser.h"
#include "libcore/text/pretokenize/split_pattern.h"

namespace megalith {
namespace {

constexpr std::array kSpecialTokens = {"<unk>", "<s>", "</s>", "<mask>", "<pad>", "<cls>", "<sep>"};
constexpr const char* kEnd = "</s>";
constexpr int kMegatronsSize = 131072;  // number of ids without --vocab-size

using Tokens = std::vector<std::string>;  // the bytes of each token, in the order of their ranks

std::string decode_token(std::string_view base64, const std::string& where) {
  auto bytes = decode_base64(base64);
  if (!bytes || bytes->empty())
    fail(ErrorKind::kData, where, ": ", quote(base64), " is not a token in base64");
  return std::move(*bytes);
}

void check_rank(bool is_next, const std::string& found, size_t wanted, const std::string& where) {
  if (!is_next) fail(ErrorKind::kData, where, ": rank ", found, ", wanted ", wanted, ": ranks go up by one");
}

Tokens read_json(const Json& list, const std::string& path, size_t max_tokens) {
  Tokens tokens;
  for (const Json& entry : list.as_array()) {
    if (tokens.size() == max_tokens) break;
    const size_t rank = tokens.size();
    const std::string where = concat(path, ": token ", rank);
    const Json* number = entry.find("rank");
    const Json* bytes = entry.find("token_bytes");
    if (!number || !bytes || !bytes->is_string())
      fail(ErrorKind::kData, where, " is ", shortened(entry.dump(), 100),
           ", wanted {\"rank\": …, \"token_bytes\": \"…\", \"token_str\": \"…\"}");
    check_rank(*number == Json(static_cast<int64_t>(rank)), number->dump(), rank, where);
    tokens.push_back(decode_token(bytes->as_string(), where));
    if (rank < 256 && tokens.back() != std::string(1, static_cast<char>(rank)))
      fail(ErrorKind::kData, where, " is not byte ", rank, "; the first 256 tokens are the bytes in order");
  }
  return tokens;
}

Tokens read_lines(std::string_view text, const std::string& path, size_t max_tokens) {
  Tokens tokens;
  for (size_t number = 1; !text.empty() && tokens.size() < max_tokens; ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    const std::string where = concat(path, ":", number);
    const size_t blank = line.find(' ');
    if (blank == std::string_view::npos)
      fail(ErrorKind::kData, where, ": found ", quote(shortened(line, 100)),
           ", wanted a token in base64, a blank and its rank (or a JSON list)");
    const std::string_view rank = line.substr(blank + 1);
    check_rank(parse_int(rank) == static_cast<int64_t>(tokens.size()), quote(rank), tokens.size(), where);
    tokens.push_back(decode_token(line.substr(0, blank), where));
  }
  return tokens;
}

std::string pattern_of(const std::string& name) {
  if (name == "v1")
    return R"([^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
  if (name == "v2")
    return R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  fail(ErrorKind::kUsage, "--tiktoken-pattern ", quote(name), " is not known; wanted v1 or v2");
}

/// All special tokens by id: first those of the user or the seven default ones, then numbered ones.
Tokens special_tokens(const TikTokenSettings& settings) {
  Tokens names = settings.special;
  if (names.empty()) names.assign(kSpecialTokens.begin(), kSpecialTokens.end());
  const auto count = static_cast<size_t>(settings.special_tokens);
  if (names.size() > count)
    fail(ErrorKind::kUsage, "--tiktoken-num-special-tokens ", count, ", wanted at least ", names.size(),
         ", the number of special tokens that are named");
  for (const char* needed : kSpecialTokens)
    if (std::find(names.begin(), names.end(), needed) == names.end())
      fail(ErrorKind::kUsage, "--tokenizer-special-tokens has no ", quote(needed), "; TikTokenizer needs ",
           join(Tokens(kSpecialTokens.begin(), kSpecialTokens.end()), " "));
  while (names.size() < count) names.push_back(concat("<SPECIAL_", names.size(), ">"));
  std::unordered_set<std::string_view> known;
  for (const std::string& name : names)
    if (!known.insert(name).second)
      fail(ErrorKind::kUsage, "--tokenizer-special-tokens: ", quote(name), " appears twice among the ", count,
           " special tokens");
  return names;
}

/// What Mistral's tekken.json says of its tokens.
struct TekkenConfig {
  std::string pattern;
  size_t vocab_size = 0, special_tokens = 0;
};

TekkenConfig read_tekken_config(const JsonCursor& root) {
  const JsonCursor config = root.at("config");
  const auto number = [&](const char* key) {
    const JsonCursor value = config.at(key);
    constexpr int64_t kMost = 1 << 21;  // more rows than any model has
    if (value.integer() < 0 || value.integer() > kMost) value.refuse(concat("0 to ", kMost));
    return static_cast<size_t>(value.integer());
  };
  TekkenConfig out{.pattern = config.at("pattern").text(),
                   .vocab_size = number("default_vocab_size"),
                   .special_tokens = number("default_num_special_tokens")};
  if (out.vocab_size < out.special_tokens + 256)
    config.at("default_vocab_size").refuse("room for the special tokens and 256 bytes");
  return out;
}

/// The special tokens of a tekken.json by id. A file without a list has those of the first models.
Tokens tekken_special_tokens(const JsonCursor& root, size_t count) {
  constexpr std::array kFirst = {"<unk>",
                                 "<s>",
                                 "</s>",
                                 "[INST]",
                                 "[/INST]",
                                 "[AVAILABLE_TOOLS]",
                                 "[/AVAILABLE_TOOLS]",
                                 "[TOOL_RESULTS]",
                                 "[/TOOL_RESULTS]",
                                 "[TOOL_CALLS]",
                                 "[IMG]",
                                 "<pad>",
                                 "[IMG_BREAK]",
                                 "[IMG_END]",
                                 "[PREFIX]",
                                 "[MIDDLE]",
                                 "[SUFFIX]",
                                 "[SYSTEM_PROMPT]",
                                 "[/SYSTEM_PROMPT]",
                                 "[TOOL_CONTENT]"};
  Tokens names;
  if (const auto list = root.find("special_tokens")) {
    for (const JsonCursor& token : list->list()) {
      const JsonCursor rank = token.at("rank");
      if (rank.integer() != static_cast<int64_t>(names.size()))
        rank.refuse(concat(names.size(), ": ranks go up by one"));
      names.push_back(token.at("token_str").text());
    }
  } else {
    names.assign(kFirst.begin(), kFirst.end());
  }
  if (names.size() > count)
    root.at("config").at("default_num_special_tokens").refuse(concat("at least ", names.size()));
  while (names.size() < count) names.push_back(concat("<SPECIAL_", names.size(), ">"));
  return names;
}

/// The pattern of a file. Throws kData for one that is not supported.
SplitPattern pattern_in(const std::string& regex, const std::string& path) {
  try {
    SplitPattern pattern = split_pattern(regex);
    if (!pattern.find) throw UnsupportedPattern{"matches that leave out text"};
    return pattern;
  } catch (const UnsupportedPattern& unsupported) {
    fail(ErrorKind::kData, path, ": its pattern has ", unsupported.what,
         ", which is not supported (docs/formats/tokenizer.md)");
  }
}

/// Adds the special tokens, and after them the tokens of the file.
void fill_tokens(ByteLevelModel& model, const Tokens& special, const Tokens& tokens) {
  for (const std::string& name : special) {
    const auto id = static_cast<int32_t>(model.tokens.size());
    if (name == kEnd) model.eod = id;
    model.tokens.push_back(name);
    model.raw_added.push_back({.text = name, .id = id});
  }
  model.literal.assign(special.size(), true);
  model.tokens.insert(model.tokens.end(), tokens.begin(), tokens.end());
  model.literal.resize(model.tokens.size(), false);
}

/// Adds a merge for every way to join two tokens into a third. Its rank is that of the third token, since
/// tiktoken joins the pair that gives the lowest rank.
void fill_merges(ByteLevelModel& model, const Tokens& tokens, int special, const std::string& path) {
  std::unordered_map<std::string_view, int32_t> ids;
  ids.reserve(tokens.size());
  for (size_t rank = 0; rank < tokens.size(); ++rank) {
    const int32_t id = static_cast<int32_t>(rank) + special;
    if (!ids.emplace(tokens[rank], id).second)
      fail(ErrorKind::kData, path, ": token ", rank, ", ", quote(tokens[rank]), ", appears twice");
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(std::string(1, static_cast<char>(byte)));
    if (found == ids.end())
      fail(ErrorKind::kData, path, ": no token for byte ", byte, "; each of the 256 bytes has one");
    model.byte_ids[byte] = found->second;
  }
  for (const auto& [token, id] : ids)
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ids.find(token.substr(0, cut));
      if (left == ids.end()) continue;
      const auto right = ids.find(token.substr(cut));
      if (right != ids.end()) model.merges.push_back({left->second, right->second, id});
    }
}

bool is_tekken(std::string_view contents) {
  return trim(contents).starts_with('{');
}

/// Mistral's own program does not look for special tokens in texts, so no text has their ids.
ByteLevelModel read_tekken(const Json& json, const std::string& path, const TikTokenSettings& settings) {
  if (!settings.special.empty())
    fail(ErrorKind::kUsage, "--tokenizer-special-tokens cannot be given with ", path,
         ", which names its own");
  const JsonCursor root(json, path);
  const TekkenConfig config = read_tekken_config(root);
  const Tokens names = tekken_special_tokens(root, config.special_tokens);
  const size_t wanted = config.vocab_size - config.special_tokens;
  const JsonCursor vocab = root.at("vocab");
  if (!vocab.json().is_array()) vocab.refuse("a list");
  const Tokens tokens = read_json(vocab.json(), path, wanted);
  if (tokens.size() < wanted)
    fail(ErrorKind::kData, path, ": vocab has ", tokens.size(), " tokens, but config says ", wanted);
  ByteLevelModel model;
  model.name = "TikTokenizer";
  const SplitPattern pattern = pattern_in(config.pattern, path);
  model.rules = pattern.name;
  model.find_pretokens = pattern.find;
  model.ranks = MergeRanks::kToken;
  model.ignore_merges = true;
  fill_tokens(model, names, tokens);
  model.raw_added.clear();
  fill_merges(model, tokens, static_cast<int>(config.special_tokens), path);
  return model;
}

/// The first bytes of a file, all of a small one.
std::string beginning_of(const std::string& path) {
  constexpr uint64_t kBytes = uint64_t{1} << 16;
  const ReadableFile file(path);
  std::string bytes(std::min(file.size(), kBytes), '\0');
  file.read_at(0, bytes.data(), bytes.size());
  return bytes;
}

/// How the tokenizer of a file that has been read before splits texts.
FindPretokens find_of(const std::string& path, const TikTokenSettings& settings) {
  std::string text = beginning_of(path);
  if (trim(text).empty()) text = read_file(path);
  if (!is_tekken(text)) return split_pattern(pattern_of(settings.pattern)).find;
  // In published files "config" comes first, so the rest, 19 MB, need not be read.
  const size_t vocab = text.find("\"vocab\"");
  const bool has_config = vocab != std::string::npos && text.find("\"config\"") < vocab;
  text = has_config ? text.substr(0, text.rfind(',', vocab)) + "}" : read_file(path);
  const Json json = Json::parse(text, path);
  return pattern_in(read_tekken_config(JsonCursor(json, path)).pattern, path).find;
}

}  // namespace

ByteLevelModel read_tiktoken(const std::string& path, const TikTokenSettings& settings) {
  const std::string contents = read_file(path);
  if (is_tekken(contents)) return read_tekken(Json::parse(contents, path), path, settings);
  const int special = settings.special_tokens;
  const auto min_special = static_cast<int>(kSpecialTokens.size());
  if (special < min_special)
    fail(ErrorKind::kUsage, "--tiktoken-num-special-tokens ", special, ", wanted at least ", min_special);
  const Tokens names = special_tokens(settings);
  const bool is_json = trim(contents).starts_with('[');
  const int size = settings.vocab_size > 0 ? settings.vocab_size : is_json ? kMegatronsSize : 0;
  if (size > 0 && size < special + 256)
    fail(ErrorKind::kUsage, "--vocab-size ", size, " leaves no room for ", special,
         " special tokens and 256 bytes");
  const size_t max_tokens = size > 0 ? static_cast<size_t>(size - special) : SIZE_MAX;
  const Tokens tokens = is_json ? read_json(Json::parse(contents, path), path, max_tokens)
                                : read_lines(contents, path, max_tokens);
  if (size > 0 && tokens.size() < max_tokens)
    fail(ErrorKind::kData, path, ": ", tokens.size(), " tokens, but a vocabulary of ", size, " with ",
         special, " special tokens needs ", max_tokens, "; give --vocab-size ",
         tokens.size() + static_cast<size_t>(special));
  ByteLevelModel model;
  model.name = "TikTokenizer";
  const SplitPattern pattern = split_pattern(pattern_of(settings.pattern));
  model.rules = pattern.name;
  model.find_pretokens = pattern.find;
  model.ranks = MergeRanks::kToken;
  model.ignore_merges = true;
  fill_tokens(model, names, tokens);
  fill_merges(model, tokens, special, path);
  return model;
}

std::unique_ptr<ByteLevelTokenizer> make_tiktoken_tokenizer(const std::string& path,
                                                            const TikTokenSettings& settings) {
  const std::string files[] = {path};
  std::vector<std::string> words = settings.special;
  words.push_back(concat(settings.pattern, " ", settings.special_tokens, " ", settings.vocab_size));
  const std::optional<CachedFile> kept = kept_file("tiktoken", files, words);
  return kept_tokenizer(kept, kept ? find_of(path, settings) : FindPretokens(),
                        [&] { return read_tiktoken(path, settings); });
}

}  // namespace megalith
