#include "libcore/text/formats/token_decoder.h"

#include <optional>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/text/unicode/byte_alphabet.h"
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

std::optional<char> byte_of(const std::string& token) {
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

Tokens apply(const TokenDecoder::ByteFallback&, Tokens tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    if (valid_utf8_prefix(bytes) == bytes.size())
      out.push_back(bytes);
    else
      out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
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

Tokens apply(const TokenDecoder::Strip& step, Tokens tokens) {
  for (std::string& token : tokens) {
    size_t begin = 0, end = token.size();
    for (size_t i = 0; i < step.start && token.compare(begin, step.content.size(), step.content) == 0; ++i)
      begin += step.content.size();
    for (size_t i = 0;
         i < step.stop && std::string_view(token).substr(begin, end - begin).ends_with(step.content); ++i)
      end -= step.content.size();
    token = token.substr(begin, end - begin);
  }
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

}  // namespace megalith
