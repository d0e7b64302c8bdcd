#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "libcore/json/json.h"
#include "libcore/text/chat/jinja_text.h"

namespace megalith::jinja {

struct Undefined {};
using Namespace =
    std::shared_ptr<std::map<std::string, Json>>;  // shared: all variables that hold it see its changes

struct Node;
/// A macro, which the template's tree owns.
struct Macro {
  const Node* node;
};

/// Undefined, a namespace, a macro, or a JSON value (None is null).
using Value = std::variant<Undefined, Json, Namespace, Macro>;

bool is_undefined(const Value& value);
/// nullptr if the value is undefined, a namespace or a macro.
const Json* json_of(const Value& value);
bool is_text(const Value& value);
/// The result of Python's bool().
bool truth(const Value& value);
bool equal(const Value& a, const Value& b);
/// The approximate bytes of a value and the depth of its nesting, so that a template cannot exhaust memory or
/// the stack. Counting stops once either exceeds kMaxBytes or kDeepest.
struct Extent {
  static constexpr size_t kMaxBytes = kMaxText;
  static constexpr int kDeepest = 1200;  // somewhat deeper than a JSON file may be nested
  size_t bytes = 0;
  int depth = 0;
  bool too_much() const { return bytes > kMaxBytes || depth > kDeepest; }
};
Extent extent_of(const Json& json);
/// The kind of a value for messages, such as "a list".
std::string kind_of(const Value& value);
/// The characters of a text, one for each index in Python.
std::vector<std::string> characters_of(std::string_view text);

}  // namespace megalith::jinja
