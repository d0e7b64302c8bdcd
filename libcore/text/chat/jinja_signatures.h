#pragma once

#include <array>
#include <string_view>

#include "libcore/text/chat/jinja.h"

/// Jinja's filters, tests, methods and functions, and their arguments.
namespace megalith::jinja {

struct Signature {
  std::string_view name;
  size_t needed = 0;                                // the first so many parameters
  std::array<std::string_view, 4> parameters = {};  // empty ones: there are no more
  bool by_name = true;                              // whether parameters may be given by name, too
};

/// nullptr for what is not supported.
const Signature* find_filter(std::string_view name);
const Signature* find_method(std::string_view name);
const Signature* find_function(std::string_view name);
bool is_test(std::string_view name);

/// Whether Python's value has an attribute of that name, because a template gets that where there is no such
/// member.
bool is_python_attribute(const Json& value, std::string_view name);

/// Puts the arguments of a call, which stand in call.children from `first` on and in call.named, in the order
/// of the parameters; those that are not given are kAbsent. Returns what is wrong with them, or "".
std::string arrange_arguments(Expr& call, size_t first, const Signature& signature);

}  // namespace megalith::jinja
