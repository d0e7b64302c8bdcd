#include "libcore/text/formats/token_decoder.h"

#include <optional>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/text/unicode/byte_alphabet.h"
#include "libcore/text/unicode/marked_bytes.h"
#include "libcore/text/unicode/python_text.h"

namespace megalith {
namespace {

using Tokens = std::vector<std::string>;

// `tokens` is passed by value in all overloads: for a reference, std::apply() would be the better match.
// NOLINTBEGIN(performance-unnecessary-value-param)
Tokens apply(const TokenDecoder::ByteLevel&, Tokens tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes += from_byte_alphabet(token).value_or(token);
  return {replace_invalid_utf8(bytes)};
}

Tokens apply(const TokenDecoder::Fuse&, Tokens tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  return {all};
}
// NOLINTEND(performance-unnecessary-value-param)

std::optional<char> byte_of(std::string_view token) {
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  // The first digit may be a plus: Rust's from_str_radix accepts one.
  const int high = token[3] == '+' ? 0 : digit(token[3]);
  const int low = digit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

/// What ByteFallback makes of a run of bytes: one token if they are UTF-8, else one for each byte.
Tokens tokens_of(const std::string& bytes) {
  if (valid_utf8_prefix(bytes) == bytes.size()) return {bytes};
  return Tokens(bytes.size(), "\xEF\xBF\xBD");
}

Tokens apply(const TokenDecoder::ByteFallback&, Tokens tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    for (std::string& token : tokens_of(bytes)) out.push_back(std::move(token));
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const auto byte = byte_of(token)) {
      bytes += *byte;
      continue;
    }
    flush();
    out.push_back(std::move(token));
  }
  flush();
  return out;
}

Tokens apply(const TokenDecoder::Replace& step, Tokens tokens) {
  for (std::string& token : tokens) token = replaced(token, step.from, step.to);
  return tokens;
}

std::string_view stripped(const TokenDecoder::Strip& step, std::string_view token) {
  for (size_t i = 0; i < step.start && token.starts_with(step.content); ++i)
    token.remove_prefix(step.content.size());
  for (size_t i = 0; i < step.stop && token.ends_with(step.content); ++i)
    token.remove_suffix(step.content.size());
  return token;
}

Tokens apply(const TokenDecoder::Strip& step, Tokens tokens) {
  for (std::string& token : tokens) token = std::string(stripped(step, token));
  return tokens;
}

Tokens apply(const TokenDecoder::Metaspace& step, Tokens tokens) {
  for (size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = replaced(tokens[i], step.mark, i == 0 && step.drop_first ? "" : " ");
  return tokens;
}

/// What Hugging Face does with each token by itself.
std::string cleaned_up(std::string token) {
  constexpr std::pair<const char*, const char*> kReplaced[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kReplaced) token = replaced(token, from, to);
  return token;
}

Tokens apply(const TokenDecoder::WordPiece& step, Tokens tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string& token = tokens[i];
    if (i > 0 && token.starts_with(step.prefix))
      token.erase(0, step.prefix.size());
    else if (i > 0)
      token.insert(0, " ");
    if (step.clean_up) token = cleaned_up(std::move(token));
  }
  return tokens;
}

size_t bytes_of(const Tokens& tokens) {
  size_t bytes = 0;
  for (const std::string& token : tokens) bytes += token.size();
  return bytes;
}

}  // namespace

std::string TokenDecoder::decode(std::vector<std::string> tokens) const {
  const size_t max_bytes = 64 * bytes_of(tokens) + (size_t{1} << 16);
  for (const Step& step : steps_) {
    tokens = std::visit([&](const auto& s) { return apply(s, std::move(tokens)); }, step);
    if (bytes_of(tokens) > max_bytes)
      fail(ErrorKind::kData, "the tokenizer's decoder makes more than ", max_bytes, " bytes of ",
           tokens.size(), " tokens; no language needs that");
  }
  return replace_invalid_utf8(join(tokens, steps_.empty() ? " " : ""));
}

namespace {

constexpr char kEndMark = '\xFE';  // the end of a text; no text has this byte

/// The steps of a decoder that a JoinedDecoder does.
struct JoiningSteps {
  std::vector<TokenDecoder::Replace> replaces;
  bool bytes = false;
  std::optional<TokenDecoder::Strip> strip;
};

/// Replace, ByteFallback, Fuse and Strip, in this order; all but Fuse may be missing.
std::optional<JoiningSteps> joining_steps(const TokenDecoder& decoder) {
  JoiningSteps found;
  auto at = decoder.steps().begin();
  const auto end = decoder.steps().end();
  for (; at != end && std::holds_alternative<TokenDecoder::Replace>(*at); ++at)
    found.replaces.push_back(std::get<TokenDecoder::Replace>(*at));
  found.bytes = at != end && std::holds_alternative<TokenDecoder::ByteFallback>(*at);
  if (found.bytes) ++at;
  if (at == end || !std::holds_alternative<TokenDecoder::Fuse>(*at)) return std::nullopt;
  if (++at == end) return found;
  if (!std::holds_alternative<TokenDecoder::Strip>(*at)) return std::nullopt;
  found.strip = std::get<TokenDecoder::Strip>(*at);
  return ++at == end ? std::optional(found) : std::nullopt;
}

/// Appends a text that has marked bytes.
void append_unmarked(std::string_view marked, std::string& out) {
  std::string bytes;
  while (true) {
    const std::string_view plain = marked.substr(0, marked.find(kByteMark));
    out += plain;
    marked.remove_prefix(plain.size());
    if (marked.empty()) return;
    take_marked_bytes(marked, bytes);
    for (const std::string& token : tokens_of(bytes)) out += token;
  }
}

/// Appends texts that have marked bytes and end with kEndMark: each is stripped and gets a line end.
void append_stripped(std::string_view marked, const TokenDecoder::Strip& strip, std::string& out) {
  std::string text;
  while (!marked.empty()) {
    const std::string_view one = marked.substr(0, marked.find(kEndMark));
    text.clear();
    append_unmarked(one, text);
    out.append(stripped(strip, text)).append("\n");
    marked.remove_prefix(one.size() + 1);
  }
}

}  // namespace

std::optional<JoinedDecoder> JoinedDecoder::of(const TokenDecoder& decoder, const TokenTexts& tokens) {
  constexpr size_t kMostGrowth = 64;  // beyond which decode() may refuse a text
  const auto steps = joining_steps(decoder);
  if (!steps) return std::nullopt;
  std::vector<std::string> texts(tokens.size());
  for (size_t id = 0; id < texts.size(); ++id) {
    std::string& text = texts[id] = tokens[id];
    for (const TokenDecoder::Replace& step : steps->replaces)
      if (text.find(step.from) != std::string::npos) text = replaced(text, step.from, step.to);
    if (text.size() > kMostGrowth * tokens[id].size()) return std::nullopt;
    if (!steps->bytes) continue;
    // A token whose text is replaced by nothing still ends a run of bytes.
    if (text.empty() && !tokens[id].empty()) return std::nullopt;
    if (const auto byte = byte_of(text)) text = marked_byte(static_cast<uint8_t>(*byte));
  }
  JoinedDecoder made;
  made.texts_ = TokenTexts(texts);
  made.strip_ = steps->strip;
  return made;
}

void JoinedDecoder::decode_all(std::span<const int32_t> ids, ByteBuffer& out) const {
  const size_t before = out.size();
  append_texts(texts_, ids, out, strip_ ? kEndMark : '\n');
  const std::string_view added(out.data() + before, out.size() - before);
  if (!strip_ && added.find(kByteMark) == std::string_view::npos) return;
  std::string done;
  if (strip_)
    append_stripped(added, *strip_, done);
  else
    append_unmarked(added, done);
  out.truncate(before);
  out.append(done.data(), done.size());
}

}  // namespace megalith
