#pragma once

#include <array>
#include <string_view>

#include "libcore/text/chat/jinja.h"

/// Jinja's filters, tests, methods and functions, and their arguments.
namespace megalith::jinja {

struct Signature {
  std::string_view name;
  size_t needed = 0;                                // how many of the first parameters are required
  std::array<std::string_view, 4> parameters = {};  // an empty one ends the list
  bool by_name = true;                              // whether parameters may also be given by name
};

/// nullptr if the name is not supported.
const Signature* find_filter(std::string_view name);
const Signature* find_method(std::string_view name);
const Signature* find_function(std::string_view name);
bool is_test(std::string_view name);
/// The operator that a test such as "equalto" stands for; null: it stands for none.
const char* sign_of_test(std::string_view name);
/// Whether a test has an argument: those that compare, and "divisibleby".
bool test_takes_argument(std::string_view name);
/// Whether a filter applies another filter or a test to each element: map, select, reject, selectattr,
/// rejectattr. It takes any number of arguments, so they are not arranged.
bool is_selection(std::string_view filter);

/// Whether the value has an attribute of that name in Python. Jinja returns the attribute for value.name, and
/// for value["name"] if there is no such member.
bool is_python_attribute(const Json& value, std::string_view name);

/// Puts the arguments of a call (call.children from `first` on, and call.named) into the order of the
/// parameters; those that are not given become kAbsent. Returns what is wrong with them, or "".
std::string arrange_arguments(Expr& call, size_t first, const Signature& signature);

}  // namespace megalith::jinja
