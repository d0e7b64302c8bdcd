#include "libcore/text/chat/jinja_lexer.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"

namespace megalith::jinja {
namespace {

using Token = TemplateToken;

constexpr size_t kLongestTag = 2000;  // most tokens of a tag: a chain of n operators is nested n deep

/// Splits a template into texts and tags, and drops the white space that tags strip.
class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name) : source_(source), name_(name) {
    if (source_.ends_with('\n')) source_.remove_suffix(1);
  }

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const size_t open = next_tag();
      add_text(open);
      if (open < source_.size()) tag();
    }
    tokens_.push_back({Token::kEnd, {}, line_});
    return std::move(tokens_);
  }

 private:
  size_t next_tag() const {
    for (size_t i = at_; i + 1 < source_.size(); ++i)
      if (source_[i] == '{' && (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#'))
        return i;
    return source_.size();
  }

  char peek(size_t i) const { return i < source_.size() ? source_[i] : '\0'; }

  /// Adds the text up to a tag, without the white space that the tags around it strip.
  void add_text(size_t end) {
    std::string_view text = source_.substr(at_, end - at_);
    const int line = line_;
    line_ += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    const bool at_line_start = at_ == 0 || source_[at_ - 1] == '\n';
    if (strip_left_)
      text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    else if (trim_newline_ && text.starts_with("\r\n"))
      text.remove_prefix(2);
    else if (trim_newline_ && text.starts_with('\n'))
      text.remove_prefix(1);
    const bool begins_line = at_line_start || (trim_newline_ && text.size() < end - at_);
    if (end < source_.size()) text = without_end(text, end, begins_line);
    strip_left_ = trim_newline_ = false;
    if (!text.empty()) tokens_.push_back({Token::kText, std::string(text), line});
    at_ = end;
  }

  /// Drops the white space that "{%-" and lstrip_blocks strip before a tag.
  std::string_view without_end(std::string_view text, size_t tag, bool begins_line) const {
    const char mark = peek(tag + 2);
    if (mark == '-') return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    if (peek(tag + 1) == '{' || mark == '+') return text;
    const size_t last = text.find_last_not_of(" \t");
    if (last == std::string_view::npos) return begins_line ? text.substr(0, 0) : text;
    return text[last] == '\n' ? text.substr(0, last + 1) : text;
  }

  void tag() {
    const char kind = source_[at_ + 1];
    const int line = line_;
    at_ += 2;
    if (peek(at_) == '-' || peek(at_) == '+') ++at_;
    if (kind == '#') return comment(line);
    tokens_.push_back({kind == '{' ? Token::kOutput : Token::kBlock, {}, line});
    const char close = kind == '{' ? '}' : '%';
    int depth = 0;
    const size_t begin = tokens_.size();
    while (!ends_here(close, depth)) {
      if (tokens_.size() - begin > kLongestTag) refuse(name_, line, "a tag that is too long");
      if (at_ >= source_.size()) refuse(name_, line, "a tag that does not end");
      const char c = source_[at_];
      if (c == '\n') ++line_;
      if (std::isspace(static_cast<unsigned char>(c)))
        ++at_;
      else
        add_token(depth);
    }
    tokens_.push_back({Token::kEnd, {}, line_});
  }

  /// Whether the tag ends here; if so, moves past its end.
  bool ends_here(char close, int depth) {
    if (depth > 0) return false;
    const size_t at = at_ + (peek(at_) == '-' || peek(at_) == '+' ? 1 : 0);
    if (peek(at) != close || peek(at + 1) != '}') return false;
    strip_left_ = peek(at_) == '-';
    trim_newline_ = close != '}' && peek(at_) != '+';
    at_ = at + 2;
    return true;
  }

  void comment(int line) {
    const size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) refuse(name_, line, "a comment that does not end");
    const std::string_view text = source_.substr(at_, end - at_);
    line_ += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    strip_left_ = text.ends_with('-');
    trim_newline_ = true;
    at_ = end + 2;
  }

  void add_token(int& depth) {
    const char c = source_[at_];
    if (c == '"' || c == '\'') return add_string(c);
    if (std::isdigit(static_cast<unsigned char>(c))) return add_number();
    if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') return add_name();
    add_sign(depth);
  }

  void add_name() {
    const size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(peek(at_))) || peek(at_) == '_') ++at_;
    add(Token::kName, source_.substr(begin, at_ - begin));
  }

  void add_sign(int& depth) {
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "//", "**"})
      if (source_.substr(at_, 2) == sign) {
        at_ += 2;
        return add(Token::kSign, sign);
      }
    const char c = source_[at_];
    if (std::string_view("+-*/%~<>=()[]{},.:|").find(c) == std::string_view::npos)
      refuse(name_, line_, concat("the character ", quote(std::string(1, c)), " in a tag"));
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    add(Token::kSign, source_.substr(at_++, 1));
  }

  void add(Token::Kind kind, std::string_view text) { tokens_.push_back({kind, std::string(text), line_}); }

  void add_number() {
    const size_t begin = at_;
    while (std::isdigit(static_cast<unsigned char>(peek(at_)))) ++at_;
    const bool fraction = peek(at_) == '.' && std::isdigit(static_cast<unsigned char>(peek(at_ + 1)));
    if (fraction) ++at_;
    while (fraction && std::isdigit(static_cast<unsigned char>(peek(at_)))) ++at_;
    add(fraction ? Token::kNumber : Token::kInteger, source_.substr(begin, at_ - begin));
  }

  void add_string(char quote_mark) {
    std::string text;
    const int line = line_;
    for (++at_; peek(at_) != quote_mark; ++at_) {
      if (at_ >= source_.size()) refuse(name_, line, "a string that does not end");
      if (source_[at_] == '\n') ++line_;
      if (source_[at_] == '\\')
        add_escape(text);
      else
        text += source_[at_];
    }
    ++at_;
    tokens_.push_back({Token::kString, std::move(text), line});
  }

  /// Python's escapes. Starts at the backslash and leaves at_ at the last character of the escape.
  void add_escape(std::string& text) {
    static constexpr std::string_view kMarks = "ntr\\'\"bfav\n";
    static constexpr std::string_view kMeant = "\n\t\r\\'\"\b\f\a\v";
    const char c = peek(++at_);
    const size_t known = c == '\0' ? std::string_view::npos : kMarks.find(c);
    if (c == '\n') return;
    if (c == 'N') refuse(name_, line_, "the escape \\N is not supported");
    if (known != std::string_view::npos) {
      text += kMeant[known];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      ++at_;
      add_code(text, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
    } else if (is_octal(c)) {
      add_code(text, is_octal(peek(at_ + 1)) ? is_octal(peek(at_ + 2)) ? 3 : 2 : 1, 8);
    } else {
      text += '\\';
      text += c;
    }
  }
  static bool is_octal(char c) { return c >= '0' && c <= '7'; }

  /// Appends the character whose number is written at at_.
  void add_code(std::string& text, size_t digits, int base) {
    uint32_t code = 0;
    for (size_t i = 0; i < digits; ++i) {
      if (!std::isxdigit(static_cast<unsigned char>(peek(at_ + i))))
        refuse(name_, line_, "an escape without its digits");
      code = code * static_cast<uint32_t>(base) +
             static_cast<uint32_t>(std::stoi(std::string(1, peek(at_ + i)), nullptr, base));
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      refuse(name_, line_, "an escape that stands for no character");
    at_ += digits - 1;
    append_utf8(text, code);
  }

  std::string_view source_;
  const std::string& name_;
  size_t at_ = 0;
  int line_ = 1;
  bool strip_left_ = false, trim_newline_ = false;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<TemplateToken> tokens_of(std::string_view source, const std::string& name) {
  return Lexer(source, name).run();
}

void refuse(const std::string& name, int line, const std::string& what) {
  fail(ErrorKind::kData, name, ": chat template, line ", line, ": ", what);
}

}  // namespace megalith::jinja
