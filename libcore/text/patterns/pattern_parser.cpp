#include "libcore/text/patterns/pattern_parser.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/patterns/properties.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

using Node = PatternNode;
using Kind = Node::Kind;

constexpr size_t kMostRepeats = 2000;
constexpr size_t kDeepest = 100;

bool is_letter(uint32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// The characters that are one without regard to case. Beside both forms of a letter there are U+017F for s
/// and U+212A for k.
CharRanges caseless(uint32_t c) {
  if (!is_letter(c)) return CharRanges::one(c);
  CharRanges set = CharRanges::one(c) | CharRanges::one(c ^ 0x20);
  if ((c | 0x20) == 's') set = set | CharRanges::one(0x17F);
  if ((c | 0x20) == 'k') set = set | CharRanges::one(0x212A);
  return set;
}

/// Whether one character is both letters without regard to case: a ligature, or the sharp s.
bool may_be_one_character(uint32_t first, uint32_t second) {
  const auto lower = [](uint32_t c) { return static_cast<char>(c | 0x20); };
  const std::string both = {lower(first), lower(second)};
  return both == "ff" || both == "fi" || both == "fl" || both == "ss" || both == "st";
}

Node set_node(CharRanges set) {
  return {.kind = Kind::kSet, .set = std::move(set)};
}

Node next_node(CharRanges set, bool at_end) {
  return {.kind = Kind::kNext, .set = std::move(set), .at_end = at_end};
}

/// The characters of a node that matches one character; nothing for others.
std::optional<CharRanges> one_character(const Node& node) {
  if (node.kind == Kind::kSet) return node.set;
  if (node.kind == Kind::kSequence && node.children.size() == 1) return one_character(node.children[0]);
  if (node.kind == Kind::kRepeat && node.min == 1 && node.max == 1) return one_character(node.children[0]);
  if (node.kind != Kind::kChoice) return std::nullopt;
  CharRanges all;
  for (const Node& child : node.children) {
    const auto set = one_character(child);
    if (!set) return std::nullopt;
    all = all | *set;
  }
  return all;
}

bool may_be_empty(const Node& node) {
  const auto& children = node.children;
  switch (node.kind) {
    case Kind::kSet:
      return false;
    case Kind::kNext:
      return true;
    case Kind::kRepeat:
      return node.min == 0 || may_be_empty(children[0]);
    case Kind::kSequence:
      return std::all_of(children.begin(), children.end(), may_be_empty);
    case Kind::kChoice:
      return std::any_of(children.begin(), children.end(), may_be_empty);
  }
  return false;
}

/// What decides whether a node matches, if that is the next character only.
struct Next {
  CharRanges set;
  bool at_end;
};

std::optional<Next> decided_by_next(const Node& node) {
  const auto& children = node.children;
  switch (node.kind) {
    case Kind::kSet:
      return Next{node.set, false};
    case Kind::kNext:
      return Next{node.set, node.at_end};
    case Kind::kRepeat:
      return node.min == 1 ? decided_by_next(children[0]) : std::nullopt;
    case Kind::kSequence:
      if (children.empty() || !std::all_of(children.begin() + 1, children.end(), [](const Node& child) {
            return child.kind == Kind::kRepeat && child.min == 0;
          }))
        return std::nullopt;
      return decided_by_next(children[0]);
    case Kind::kChoice: {
      Next all{{}, false};
      for (const Node& child : children) {
        const auto next = decided_by_next(child);
        if (!next) return std::nullopt;
        all = {all.set | next->set, all.at_end || next->at_end};
      }
      return all;
    }
  }
  return std::nullopt;
}

class Parser {
 public:
  explicit Parser(std::string_view regex) : rest_(regex) {}

  Node parse() {
    Node all = choice();
    if (!rest_.empty()) unsupported("a closing parenthesis without an opening one");
    return all;
  }

 private:
  [[noreturn]] static void unsupported(std::string what) { throw UnsupportedPattern{std::move(what)}; }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  uint32_t take_character() {
    if (rest_.empty()) unsupported("an end within a set or an escape");
    const CodePoint c = code_point_at(rest_);
    rest_.remove_prefix(c.bytes);
    return c.value;
  }

  Node choice() {
    if (++depth_ > kDeepest) unsupported(concat("more than ", kDeepest, " groups in each other"));
    Node all{.kind = Kind::kChoice};
    const bool caseless_before = caseless_;
    do all.children.push_back(sequence());
    while (take("|"));
    caseless_ = caseless_before;
    --depth_;
    if (all.children.size() > 1) return all;
    Node only = std::move(all.children[0]);
    return only;
  }

  Node sequence() {
    Node all;
    last_letter_ = 0;
    while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')') {
      if (take("(?i)")) {
        caseless_ = true;
        // What follows in the group is one group, whose alternatives end with it.
        all.children.push_back(choice());
        break;
      }
      all.children.push_back(repeated(atom()));
    }
    return all;
  }

  Node atom() {
    if (take("(?:")) return group(choice());
    if (take("(?i:")) {
      const bool before = std::exchange(caseless_, true);
      Node inner = group(choice());
      caseless_ = before;
      return inner;
    }
    if (take("(?=")) return lookahead(false);
    if (take("(?!")) return lookahead(true);
    if (rest_.starts_with("(?") || rest_.starts_with("(*"))
      unsupported(concat("the group ", quote(rest_.substr(0, 4))));
    if (take("(")) return group(choice());
    if (take("[")) return set_node(set(0));
    if (take(".")) return set_node(~CharRanges::one('\n'));
    if (take("$")) return next_node(CharRanges::one('\n'), true);
    if (take("\\z")) return next_node({}, true);
    if (rest_[0] == '\\') {
      const char escape = rest_.size() > 1 ? rest_[1] : '\0';
      if (auto named = named_set()) {
        if (caseless_) unsupported("(?i) with a set of more than letters of ASCII");
        if (escape == 'w') named = word_characters(true);
        if (escape == 'W') named = ~word_characters(true);
        return set_node(std::move(*named));
      }
      return literal(escaped());
    }
    if (std::string_view("^*+?").find(rest_[0]) != std::string_view::npos)
      unsupported(concat("the sign ", rest_.substr(0, 1), " at its place"));
    return literal(take_character());
  }

  Node literal(uint32_t c) {
    if (!caseless_) return set_node(CharRanges::one(c));
    if (c >= 0x80) unsupported("(?i) with a character outside ASCII");
    if (is_letter(c) && last_letter_ != 0 && may_be_one_character(last_letter_, c))
      unsupported("(?i) with letters that are also one character");
    Node node = set_node(caseless(c));
    last_letter_ = is_letter(c) ? c : 0;
    return node;
  }

  Node group(Node inner) {
    if (!take(")")) unsupported("a group without an end");
    last_letter_ = 0;
    return inner;
  }

  Node lookahead(bool negative) {
    const auto next = decided_by_next(group(choice()));
    if (!next) unsupported("a lookahead of more than one character");
    return negative ? next_node(~next->set, !next->at_end) : next_node(next->set, next->at_end);
  }

  Node repeated(Node inner) {
    for (;;) {
      Node node{.kind = Kind::kRepeat};
      const std::string_view before = rest_;
      const bool in_braces = rest_.starts_with('{');
      if (!take_count(node)) return inner;
      last_letter_ = 0;
      if (inner.kind == Kind::kNext) unsupported("a quantifier after an assertion");
      if (take("?")) {
        // Ruby's {n}? is {n}, once or not at all.
        if (in_braces && node.min == node.max) unsupported(concat("the quantifier ", before.substr(0, 5)));
        node.greed = Node::Greed::kLazy;
      } else if (!in_braces && take("+")) {  // after braces, a plus is another quantifier
        node.greed = Node::Greed::kPossessive;
        if (!one_character(inner)) unsupported("a possessive quantifier of more than one character");
      }
      if (node.max == Node::kUnbounded && may_be_empty(inner))
        unsupported("a repetition of what may be empty");
      node.children.push_back(std::move(inner));
      inner = std::move(node);
    }
  }

  /// Takes *, +, ? or {n,m} into `node`; false if none is there.
  bool take_count(Node& node) {
    if (take("*")) {
      node.max = Node::kUnbounded;
    } else if (take("+")) {
      node.min = 1;
      node.max = Node::kUnbounded;
    } else if (take("?")) {
      node.max = 1;
    } else if (rest_.starts_with('{')) {
      take_braces(node);
    } else {
      return false;
    }
    return true;
  }

  void take_braces(Node& node) {
    const std::string whole(rest_.substr(0, std::min(rest_.find('}') + 1, rest_.size())));
    rest_.remove_prefix(1);
    const auto min = take_number();
    auto max = min;
    if (take(",")) {
      max = take_number();
      if (!max) max = Node::kUnbounded;
    }
    // Without numbers, braces are characters.
    if (!take("}") || !max || (!min && max == Node::kUnbounded) || min.value_or(0) > *max ||
        min.value_or(0) > kMostRepeats || (*max != Node::kUnbounded && *max > kMostRepeats))
      unsupported(concat("the quantifier ", quote(whole)));
    node.min = min.value_or(0);
    node.max = *max;
  }

  std::optional<size_t> take_number() {
    std::optional<size_t> number;
    while (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9' && number.value_or(0) <= kMostRepeats) {
      number = number.value_or(0) * 10 + static_cast<size_t>(rest_[0] - '0');
      rest_.remove_prefix(1);
    }
    return number;
  }

  /// \s, \p{...} and the like; nothing for other escapes.
  std::optional<CharRanges> named_set() {
    constexpr std::pair<std::string_view, std::string_view> kShort[] = {
        {"\\s", "space"}, {"\\d", "digit"}, {"\\w", "word"}};
    for (const auto& [escape, name] : kShort) {
      const std::string upper = {'\\', static_cast<char>(escape[1] - 'a' + 'A')};
      if (take(escape)) return *char_property(name);
      if (take(upper)) return ~*char_property(name);
    }
    if (!rest_.starts_with("\\p{") && !rest_.starts_with("\\P{")) return std::nullopt;
    bool negative = rest_[1] == 'P';
    rest_.remove_prefix(3);
    if (take("^")) negative = !negative;
    const std::string_view name = rest_.substr(0, rest_.find('}'));
    const auto found = char_property(name);
    if (!found || name.size() == rest_.size()) unsupported(concat("the property ", quote(name)));
    rest_.remove_prefix(name.size() + 1);
    return negative ? ~*found : *found;
  }

  /// The character of an escape.
  uint32_t escaped() {
    rest_.remove_prefix(1);
    if (rest_.empty()) unsupported("a backslash at its end");
    constexpr std::pair<char, uint32_t> kControls[] = {{'n', '\n'}, {'r', '\r'}, {'t', '\t'},
                                                       {'f', '\f'}, {'v', '\v'}, {'a', '\a'}};
    for (const auto& [name, value] : kControls)
      if (take({&name, 1})) return value;
    if (take("x{")) return hex(8, true);
    if (take("x")) return hex(2, false);
    if (take("u")) return hex(4, false);
    const uint32_t c = take_character();
    if (c < 0x80 && (is_letter(c) || (c >= '0' && c <= '9')))
      unsupported(concat("the escape \\", static_cast<char>(c)));
    return c;
  }

  uint32_t hex(size_t most, bool in_braces) {
    uint32_t value = 0;
    size_t digits = 0;
    for (; digits < most && !rest_.empty(); ++digits, rest_.remove_prefix(1)) {
      const char c = rest_[0];
      const char lower = static_cast<char>(c | 0x20);
      if (c >= '0' && c <= '9')
        value = value * 16 + static_cast<uint32_t>(c - '0');
      else if (lower >= 'a' && lower <= 'f')
        value = value * 16 + static_cast<uint32_t>(lower - 'a' + 10);
      else
        break;
    }
    // Two digits from 80 up are a byte to Oniguruma.
    const bool whole = in_braces ? digits > 0 && take("}") : digits == most;
    if (!whole || value > CharRanges::kLast || (!in_braces && most == 2 && value >= 0x80))
      unsupported("an escape of a character that is none");
    return value;
  }

  /// The rest of a set, after its opening bracket.
  CharRanges set(size_t depth) {
    if (depth > kDeepest) unsupported(concat("more than ", kDeepest, " sets in each other"));
    const bool negative = take("^");
    CharRanges all = CharRanges::all(), part;
    if (rest_.starts_with(']')) unsupported("a set that begins with ]");
    while (!take("]")) {
      if (rest_.empty()) unsupported("a set without an end");
      if (take("&&")) {
        all = all & std::exchange(part, CharRanges());
        continue;
      }
      part = part | set_item(depth);
    }
    all = all & part;
    return negative ? ~all : all;
  }

  CharRanges set_item(size_t depth) {
    if (rest_.starts_with("[:")) unsupported("a set of POSIX");
    if (take("[")) return set(depth + 1);
    if (rest_[0] == '\\')
      if (auto named = named_set()) {
        if (caseless_) unsupported("(?i) with a set of more than letters of ASCII");
        return *named;
      }
    const uint32_t first = set_character();
    if (!rest_.starts_with('-') || rest_.starts_with("-]")) return with_case(first, first);
    rest_.remove_prefix(1);
    if (rest_.starts_with('[') || rest_.starts_with("\\p") || rest_.starts_with("\\P") ||
        rest_.starts_with("\\s") || rest_.starts_with("\\w") || rest_.starts_with("\\d"))
      unsupported("a range that ends with a set");
    const uint32_t last = set_character();
    if (last < first) unsupported("a range that ends before it begins");
    return with_case(first, last);
  }
  uint32_t set_character() { return rest_.starts_with('\\') ? escaped() : take_character(); }

  CharRanges with_case(uint32_t first, uint32_t last) const {
    CharRanges out({{first, last}});
    if (!caseless_) return out;
    if (last >= 0x80) unsupported("(?i) with a set of more than letters of ASCII");
    for (uint32_t c = first; c <= last; ++c) out = out | caseless(c);
    return out;
  }

  std::string_view rest_;
  bool caseless_ = false;
  uint32_t last_letter_ = 0;  // the letter before, with (?i)
  size_t depth_ = 0;
};

}  // namespace

PatternNode parse_pattern(std::string_view regex) {
  Node all = Parser(regex).parse();
  if (may_be_empty(all)) throw UnsupportedPattern{"a match of nothing"};
  return all;
}

}  // namespace megalith
