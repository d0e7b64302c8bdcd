#include "libcore/text/patterns/oniguruma.h"

#include <algorithm>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/base/plugins/plugin.h"
#include "libcore/base/text.h"
#include "libcore/text/patterns/pattern_parser.h"
#include "libcore/text/patterns/properties.h"

namespace megalith {
namespace {

std::string set_of(const CharRanges& ranges) {
  const auto append = [](std::string& out, uint32_t code_point) {
    append_hex(out += "\\x{", code_point, 6);
    out += '}';
  };
  std::string out = "[";
  for (const auto& [first, last] : ranges.ranges()) {
    append(out, first);
    if (last > first) append(out += '-', last);
  }
  return out + ']';
}

/// Goes through an expression and replaces what has another meaning in other releases of Unicode.
class Rewriter {
 public:
  explicit Rewriter(std::string_view regex) : rest_(regex) {}

  /// Nothing if the expression has something that the replacement does not know.
  std::optional<std::string> rewrite() {
    while (!rest_.empty() && known_) {
      step();
      if (out_.size() > kLongest)
        throw UnsupportedPattern{
            concat("more than ", kLongest >> 20, " MiB with its properties written out")};
    }
    if (!known_) return std::nullopt;
    return std::move(out_);
  }

 private:
  static constexpr size_t kLongest = size_t{16} << 20;  // \b alone takes some 60 KiB

  void step() {
    if (rest_[0] == '\\')
      escape();
    else if (rest_[0] == '[')
      open_set();
    else if (rest_[0] == ']')
      close_set();
    else if (depth_ == 0 && rest_.starts_with("(?"))
      group();
    else
      copy(1);
  }

  void copy(size_t bytes) {
    bytes = std::min(bytes, rest_.size());
    out_ += rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
  }

  void open_set() {
    if (depth_ > 0 && rest_.starts_with("[:")) {  // of POSIX, such as [:alpha:]
      copy(rest_.find(":]") == std::string_view::npos ? rest_.size() : rest_.find(":]") + 2);
      return;
    }
    ++depth_;
    copy(rest_.starts_with("[^") ? 2 : 1);
    // There, a closing bracket may be a character.
    if (rest_.starts_with(']')) known_ = false;
  }
  void close_set() {
    if (depth_ > 0) --depth_;
    copy(1);
  }

  /// The options of a group may give escapes other meanings.
  void group() {
    if (rest_.starts_with("(?#")) return copy(std::min(rest_.find(')'), rest_.size() - 1) + 1);
    const std::string_view after = rest_.substr(2);
    const std::string_view letters = after.substr(0, after.find_first_of(":)<=!>~|('{"));
    if (letters.find_first_not_of("im-") != std::string_view::npos) known_ = false;
    copy(2);
  }

  void escape() {
    const char kind = rest_.size() > 1 ? rest_[1] : '\0';
    if (kind == 'p' || kind == 'P') return property();
    if (kind == 'd' || kind == 'D') return replace(2, *char_property("digit"), kind == 'D');
    if (kind == 'w' || kind == 'W') return replace(2, word_characters(depth_ == 0), kind == 'W');
    if (depth_ == 0 && (kind == 'b' || kind == 'B')) return boundary(kind == 'B');
    copy(kind == 'c' ? 3 : 2);
  }

  void property() {
    const size_t end = rest_.find('}');
    if (!rest_.substr(2).starts_with('{') || end == std::string_view::npos) return copy(2);
    std::string_view name = rest_.substr(3, end - 3);
    bool negative = rest_[1] == 'P';
    if (name.starts_with('^')) {
      negative = !negative;
      name.remove_prefix(1);
    }
    if (const auto ranges = char_property(name)) return replace(end + 1, *ranges, negative);
    copy(end + 1);
  }

  /// Outside of sets, (?i) does not change what a property means, but it does change a set.
  void replace(size_t bytes, const CharRanges& ranges, bool negative) {
    rest_.remove_prefix(bytes);
    const std::string set = set_of(negative ? ~ranges : ranges);
    out_ += depth_ == 0 ? "(?-i:" + set + ")" : set;
  }

  void boundary(bool negative) {
    rest_.remove_prefix(2);
    const std::string set = set_of(word_characters(true));
    const std::string behind = "(?<=" + set + ")", not_behind = "(?<!" + set + ")";
    const std::string ahead = "(?=" + set + ")", not_ahead = "(?!" + set + ")";
    out_ += "(?-i:" + behind + (negative ? ahead : not_ahead) + "|" + not_behind +
            (negative ? not_ahead : ahead) + ")";
  }

  std::string_view rest_;
  std::string out_;
  size_t depth_ = 0;  // of sets in each other
  bool known_ = true;
};

}  // namespace

std::string with_own_properties(std::string_view regex) {
  return Rewriter(regex).rewrite().value_or(std::string(regex));
}

std::unique_ptr<OnigurumaPattern> oniguruma_pattern(std::string_view regex,
                                                    const std::vector<std::string>& folders) {
  const Plugin plugin("libmegalith_oniguruma.so",
                      {.folders = folders,
                       .if_missing = "it is built where Oniguruma is: install the package libonig-dev and "
                                     "build Megalith again",
                       .if_library_missing = "install the package libonig5"});
  std::unique_ptr<OnigurumaPattern> made;
  plugin.function<void(const std::string&, std::unique_ptr<OnigurumaPattern>&)>("megalith_oniguruma_pattern")(
      with_own_properties(regex), made);
  return made;
}

}  // namespace megalith
