#pragma once

#include <string>
#include <utility>
#include <vector>

#include "libcore/json/json.h"

/// The syntax tree of a chat template. ChatTemplate says which part of Jinja is supported.
namespace megalith::jinja {

struct Expr {
  enum Kind {
    kLiteral,     // literal
    kName,        // text
    kMember,      // children[0].text
    kItem,        // children[0][children[1]]
    kSlice,       // children[0][children[1]:children[2]:children[3]], kAbsent for a part not given
    kAbsent,      // nothing
    kList,        // children; also a tuple
    kDict,        // children: key, value, key, value, …
    kNot,         // children[0]
    kNegative,    // children[0]
    kAnd,         // children[0], children[1]
    kOr,          // children[0], children[1]
    kBinary,      // children[0] text children[1]
    kComparison,  // children[0]; each of `named` is an operator and its right operand (a < b < c)
    kCondition,   // children[0] if children[1] else children[2] (or kAbsent)
    kFilter,      // children[0] | text(children[1…]), one child for each parameter, kAbsent if not given
    kTest,        // children[0] is text
    kMethod,      // children[0].text(children[1…]), children as in kFilter
    kCall,        // text(children…), children as in kFilter
    kMacro,       // text(children…, named…): a call of a macro
    kRefused,     // unsupported, for the reason `text`; only an error if it is evaluated
  };
  Kind kind = kAbsent;
  int line = 0;
  std::string text = {};
  Json literal = {};
  std::vector<Expr> children = {};
  /// kCall of namespace(): its members. kMacro: named arguments. kComparison: the operators with their right
  /// operands.
  std::vector<std::pair<std::string, Expr>> named = {};
};

struct Node {
  enum Kind {
    kText,      // text
    kOutput,    // exprs[0]
    kSet,       // names[0] = exprs[0], or names[0].names[1] = exprs[0]
    kSetBlock,  // names[0] = body
    kIf,        // exprs[i] is the condition of bodies[i]; one more body, if any, is the else branch
    kFor,       // for names in exprs[0], filtered by exprs[1] if any: bodies[0]; else bodies[1]
    kBreak,
    kContinue,
    kGroup,  // bodies[0], a {% generation %} block
    kMacro,  // macro names[0] with the parameters names[1…]; exprs[i] is the default of names[i + 1] or
             // kAbsent
  };
  Kind kind = kText;
  int line = 0;
  std::string text = {};
  std::vector<std::string> names = {};
  std::vector<Expr> exprs = {};
  std::vector<std::vector<Node>> bodies = {};
};

/// Throws kData, with `name` and the line, for a syntax error or an unsupported construct.
std::vector<Node> parse(const std::string& source, const std::string& name);

/// A rendered text, and where its {% generation %} blocks begin and end.
struct Rendered {
  std::string text;
  std::vector<std::pair<size_t, size_t>> generated = {};
};
/// The text of a template with these variables. kData as in ChatTemplate::render().
Rendered render(const std::vector<Node>&, const Json::Object& variables, const std::string& name);

}  // namespace megalith::jinja
