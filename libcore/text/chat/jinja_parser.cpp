#include <algorithm>
#include <string_view>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/chat/jinja_lexer.h"
#include "libcore/text/chat/jinja_signatures.h"

namespace megalith::jinja {
namespace {

using Token = TemplateToken;

constexpr int kDeepest = 100;  // deepest nesting of expressions and of blocks

class Parser {
 public:
  Parser(std::vector<Token> tokens, const std::string& name) : tokens_(std::move(tokens)), name_(name) {}

  std::vector<Node> run() {
    std::vector<Node> body = nodes({});
    if (!closing_.empty()) refuse(name_, line(), concat("{% ", closing_, " %} without its beginning"));
    return body;
  }

 private:
  const Token& token() const { return tokens_[at_]; }
  int line() const { return token().line; }
  bool is_sign(std::string_view sign) const { return token().kind == Token::kSign && token().text == sign; }
  bool is_name(std::string_view name) const { return token().kind == Token::kName && token().text == name; }
  bool accept_sign(std::string_view sign) {
    if (!is_sign(sign)) return false;
    ++at_;
    return true;
  }
  bool accept_name(std::string_view name) {
    if (!is_name(name)) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void unexpected(std::string_view wanted) const {
    const std::string found = token().kind == Token::kEnd ? "the tag's end" : quote(token().text);
    refuse(name_, line(), concat("found ", found, ", wanted ", wanted));
  }
  void want_sign(std::string_view sign) {
    if (!accept_sign(sign)) unexpected(quote(sign));
  }
  std::string want_name(std::string_view what) {
    if (token().kind != Token::kName) unexpected(what);
    return tokens_[at_++].text;
  }
  void want_end() {
    if (token().kind != Token::kEnd) unexpected("the tag's end");
    ++at_;
  }

  // ---- blocks

  /// The nodes up to a block whose name is one of `ends`. That name is then in closing_, and the block's tag
  /// has been read up to it. If there is no such block, the nodes up to the end of the template; closing_ is
  /// then empty.
  std::vector<Node> nodes(const std::vector<std::string_view>& ends) {
    if (++depth_ > kDeepest) refuse(name_, line(), "blocks nested too deeply");
    std::vector<Node> out;
    closing_.clear();
    while (at_ + 1 < tokens_.size()) {
      const Token& start = tokens_[at_++];
      if (start.kind == Token::kText) {
        out.push_back({.kind = Node::kText, .line = start.line, .text = start.text});
      } else if (start.kind == Token::kOutput) {
        out.push_back({.kind = Node::kOutput, .line = start.line});
        out.back().exprs.push_back(expression());
        want_end();
      } else {
        const std::string word = want_name("a block's name");
        if (std::find(ends.begin(), ends.end(), word) != ends.end() || is_end(word)) {
          closing_ = word;
          break;
        }
        out.push_back(block(word, start.line));
        closing_.clear();
      }
    }
    --depth_;
    return out;
  }

  static bool is_end(std::string_view word) {
    return word.starts_with("end") || word == "else" || word == "elif";
  }

  void want_closing(std::string_view word, int opened) {
    if (closing_ != word)
      refuse(name_, opened,
             concat("a block that ",
                    closing_.empty() ? "does not end" : concat("ends with {% ", closing_, " %}"),
                    "; wanted {% ", word, " %}"));
    want_end();
  }

  Node block(const std::string& word, int line) {
    if (word == "if") return if_block(line);
    if (word == "for") return for_block(line);
    if (word == "set") return set_block(line);
    if (word == "generation") return group(line);
    if (word == "macro") return macro(line);
    if (word == "break" || word == "continue") {
      if (loops_ == 0) refuse(name_, line, concat("{% ", word, " %} outside of a loop"));
      want_end();
      return {.kind = word == "break" ? Node::kBreak : Node::kContinue, .line = line};
    }
    refuse(name_, line, concat("{% ", word, " %} is not supported"));
  }

  Node group(int line) {
    want_end();
    Node node{.kind = Node::kGroup, .line = line};
    node.bodies.push_back(nodes({"endgeneration"}));
    want_closing("endgeneration", line);
    return node;
  }

  Node macro(int line) {
    Node node{.kind = Node::kMacro, .line = line};
    node.names.push_back(want_name("a macro's name"));
    want_sign("(");
    while (!accept_sign(")")) {
      node.names.push_back(want_name("a parameter"));
      node.exprs.push_back(accept_sign("=") ? expression() : Expr{});
      if (!is_sign(")")) want_sign(",");
    }
    want_end();
    const int loops = std::exchange(loops_, 0);
    node.bodies.push_back(nodes({"endmacro"}));
    loops_ = loops;
    want_closing("endmacro", line);
    return node;
  }

  Node if_block(int line) {
    Node node{.kind = Node::kIf, .line = line};
    node.exprs.push_back(expression());
    want_end();
    node.bodies.push_back(nodes({"elif", "else", "endif"}));
    while (closing_ == "elif") {
      node.exprs.push_back(expression());
      want_end();
      node.bodies.push_back(nodes({"elif", "else", "endif"}));
    }
    if (closing_ == "else") {
      want_end();
      node.bodies.push_back(nodes({"endif"}));
    }
    want_closing("endif", line);
    return node;
  }

  Node for_block(int line) {
    Node node{.kind = Node::kFor, .line = line};
    do node.names.push_back(want_name("a variable"));
    while (accept_sign(","));
    if (!accept_name("in")) unexpected("\"in\"");
    node.exprs.push_back(or_expression());
    if (accept_name("if")) node.exprs.push_back(expression());
    want_end();
    ++loops_;
    node.bodies.push_back(nodes({"else", "endfor"}));
    --loops_;
    if (closing_ == "else") {
      want_end();
      node.bodies.push_back(nodes({"endfor"}));
    }
    want_closing("endfor", line);
    return node;
  }

  Node set_block(int line) {
    Node node{.kind = Node::kSet, .line = line};
    node.names.push_back(want_name("a variable"));
    if (accept_sign(".")) node.names.push_back(want_name("a member"));
    if (node.names.back().starts_with('_') && node.names.size() == 2) refuse_member(node.names.back());
    if (accept_sign("=")) {
      node.exprs.push_back(expression());
      want_end();
      return node;
    }
    want_end();
    node.kind = Node::kSetBlock;
    node.bodies.push_back(nodes({"endset"}));
    want_closing("endset", line);
    return node;
  }

  // ---- expressions, from the loosest binding to the tightest

  /// The parts are moved, never copied: copying would copy a chain of n operators n times.
  template <class... Parts>
  Expr make(Expr::Kind kind, std::string text, Parts... parts) const {
    Expr out{.kind = kind, .line = line(), .text = std::move(text)};
    out.children.reserve(sizeof...(parts));
    (out.children.push_back(std::move(parts)), ...);
    return out;
  }

  Expr expression() {
    if (++depth_ > kDeepest) refuse(name_, line(), "an expression nested too deeply");
    Expr value = or_expression();
    while (accept_name("if")) {
      Expr condition = or_expression();
      Expr other = accept_name("else") ? expression() : Expr{};
      value = make(Expr::kCondition, {}, std::move(value), std::move(condition), std::move(other));
    }
    --depth_;
    return value;
  }

  Expr or_expression() {
    Expr left = and_expression();
    while (accept_name("or")) left = make(Expr::kOr, {}, std::move(left), and_expression());
    return left;
  }

  Expr and_expression() {
    Expr left = not_expression();
    while (accept_name("and")) left = make(Expr::kAnd, {}, std::move(left), not_expression());
    return left;
  }

  Expr not_expression() {
    if (!accept_name("not")) return comparison();
    if (++depth_ > kDeepest) refuse(name_, line(), "an expression nested too deeply");
    Expr inner = make(Expr::kNot, {}, not_expression());
    --depth_;
    return inner;
  }

  Expr comparison() {
    Expr left = sum();
    std::string sign = comparison_sign();
    if (sign.empty()) return left;
    Expr all = make(Expr::kComparison, {}, std::move(left));
    for (; !sign.empty(); sign = comparison_sign()) all.named.emplace_back(std::move(sign), sum());
    return all;
  }

  std::string comparison_sign() {
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "<", ">"})
      if (accept_sign(sign)) return std::string(sign);
    if (accept_name("in")) return "in";
    if (is_name("not") && tokens_[at_ + 1].text == "in") {
      at_ += 2;
      return "not in";
    }
    return {};
  }

  template <class Inner>
  Expr chain(std::initializer_list<std::string_view> signs, const Inner& inner) {
    Expr left = inner();
    while (true) {
      const auto* const found =
          std::find_if(signs.begin(), signs.end(), [&](std::string_view sign) { return is_sign(sign); });
      if (found == signs.end()) return left;
      ++at_;
      left = make(Expr::kBinary, std::string(*found), std::move(left), inner());
    }
  }
  Expr sum() {
    return chain({"+", "-"}, [&] { return chain({"~"}, [&] { return product(); }); });
  }
  Expr product() {
    return chain({"*", "//", "/", "%"}, [&] { return unary(); });
  }

  /// Filters apply to the signed value, since the sign binds tighter.
  Expr unary() { return filters(with_sign()); }
  Expr with_sign() {
    const bool negative = is_sign("-");
    if (!accept_sign("-") && !accept_sign("+")) return postfix(primary());
    if (++depth_ > kDeepest) refuse(name_, line(), "an expression nested too deeply");
    Expr inner = with_sign();
    inner = negative ? make(Expr::kNegative, {}, std::move(inner))
                     : make(Expr::kBinary, "+", literal(0), std::move(inner));
    --depth_;
    return inner;
  }

  Expr postfix(Expr value) {
    while (true) {
      if (accept_sign(".")) {
        const std::string member = want_name("a member");
        if (!is_sign("(")) {
          value = make(Expr::kMember, member, std::move(value));
          continue;
        }
        value = make(Expr::kMethod, member, std::move(value));
        arguments(value);
        if (member != "format" || !value.named.empty()) arrange("method", value, find_method(member));
      } else if (accept_sign("[")) {
        value = item(std::move(value));
      } else if (is_sign("(")) {
        if (value.kind != Expr::kName) refuse(name_, line(), "a call of something other than a function");
        const Signature* const function = find_function(value.text);
        value.kind = function ? Expr::kCall : Expr::kMacro;
        arguments(value);
        if (function) arrange("function", value, function);
      } else {
        return value;
      }
    }
  }

  Expr item(Expr value) {
    Expr out = make(Expr::kItem, {}, std::move(value));
    std::vector<Expr>& parts = out.children;
    bool slice = false;
    parts.push_back(is_sign(":") ? Expr{} : expression());
    while (accept_sign(":")) {
      slice = true;
      parts.push_back(is_sign(":") || is_sign("]") ? Expr{} : expression());
    }
    want_sign("]");
    if (parts.size() > 4) refuse(name_, line(), "a slice of more than three parts");
    if (slice) {
      parts.resize(4);
      out.kind = Expr::kSlice;
    }
    return out;
  }

  /// "(a, b, name=c)" after a filter, test, method or function.
  void arguments(Expr& call) {
    want_sign("(");
    while (!accept_sign(")")) {
      if (token().kind == Token::kName && tokens_[at_ + 1].kind == Token::kSign &&
          tokens_[at_ + 1].text == "=") {
        std::string name = want_name("a name");
        want_sign("=");
        call.named.emplace_back(std::move(name), expression());
      } else if (!call.named.empty()) {
        unexpected("a named argument");
      } else {
        call.children.push_back(expression());
      }
      if (!is_sign(")")) want_sign(",");
    }
  }

  /// What is not supported is refused where it is evaluated: a template may have branches that never run.
  void arrange(std::string_view kind, Expr& call, const Signature* signature) const {
    const auto reject = [&](std::string_view what) {
      call = Expr{.kind = Expr::kRefused,
                  .line = call.line,
                  .text = concat("the ", kind, " ", quote(call.text), " ", what)};
    };
    if (signature == nullptr) return reject("is not supported");
    const size_t first = call.kind == Expr::kCall ? 0 : 1;
    const bool members = call.kind == Expr::kCall && call.text == "namespace" && call.children.empty();
    if (members) return check_members(call);
    if (const std::string wrong = arrange_arguments(call, first, *signature); !wrong.empty()) reject(wrong);
  }

  void check_members(const Expr& space) const {
    for (const auto& [name, value] : space.named)
      if (name.starts_with('_')) refuse_member(name);
  }
  [[noreturn]] void refuse_member(const std::string& name) const {  // transformers refuses such members too
    refuse(name_, line(), concat("a namespace with the member ", quote(name)));
  }

  Expr filters(Expr value) {
    while (true) {
      if (accept_sign("|")) {
        const std::string filter = want_name("a filter");
        value = make(Expr::kFilter, filter, std::move(value));
        if (is_sign("(")) arguments(value);
        if (!is_selection(filter)) arrange("filter", value, find_filter(filter));
      } else if (accept_name("is")) {
        const bool negated = accept_name("not");
        const std::string test = want_name("a test");
        value = make(Expr::kTest, test, std::move(value));
        if (test_takes_argument(test))
          value.children.push_back(test_argument());
        else if (!is_test(test))
          value = make(Expr::kRefused, concat("the test ", quote(test), " is not supported"));
        if (negated) value = make(Expr::kNot, {}, std::move(value));
      } else {
        return value;
      }
    }
  }

  /// The operand of a test such as "is in [1, 2]" or "is equalto(3)".
  Expr test_argument() {
    if (!accept_sign("(")) return postfix(primary());
    Expr value = expression();
    want_sign(")");
    return value;
  }

  Expr literal(Json value) {
    Expr out = make(Expr::kLiteral, {});
    out.literal = std::move(value);
    return out;
  }

  Expr primary() {
    const Token found = token();
    if (found.kind == Token::kEnd) unexpected("an expression");
    ++at_;
    switch (found.kind) {
      case Token::kString: {
        std::string text = found.text;  // adjacent literals are joined, as in Python
        while (token().kind == Token::kString) text += tokens_[at_++].text;
        return literal(std::move(text));
      }
      case Token::kInteger: {
        const auto number = parse_int(found.text);
        if (!number) refuse(name_, found.line, concat("the number ", found.text, " is too large"));
        return literal(*number);
      }
      case Token::kNumber:
        return literal(parse_double(found.text).value_or(0));
      case Token::kName:
        return named(found);
      default:
        break;
    }
    if (found.text == "(") return parenthesis();
    if (found.text == "[") return list("]", Expr::kList);
    if (found.text == "{") return list("}", Expr::kDict);
    --at_;
    unexpected("an expression");
  }

  /// An expression in parentheses, or a tuple, which becomes a list.
  Expr parenthesis() {
    if (is_sign(")")) return list(")", Expr::kList);
    Expr inner = expression();
    if (!is_sign(",")) {
      want_sign(")");
      return inner;
    }
    ++at_;
    Expr tuple = list(")", Expr::kList);
    tuple.children.insert(tuple.children.begin(), std::move(inner));
    return tuple;
  }

  Expr named(const Token& found) {
    if (found.text == "true" || found.text == "True") return literal(true);
    if (found.text == "false" || found.text == "False") return literal(false);
    if (found.text == "none" || found.text == "None") return literal(nullptr);
    return make(Expr::kName, found.text);
  }

  Expr list(std::string_view end, Expr::Kind kind) {
    Expr out = make(kind, {});
    while (!accept_sign(end)) {
      out.children.push_back(expression());
      if (kind == Expr::kDict) {
        want_sign(":");
        out.children.push_back(expression());
      }
      if (!is_sign(end)) want_sign(",");
    }
    return out;
  }

  std::vector<Token> tokens_;
  const std::string& name_;
  size_t at_ = 0;
  int depth_ = 0;
  int loops_ = 0;  // number of open {% for %} blocks
  std::string closing_;
};

}  // namespace

std::vector<Node> parse(const std::string& source, const std::string& name) {
  return Parser(tokens_of(source, name), name).run();
}

}  // namespace megalith::jinja
