#pragma once

#include <span>
#include <string>
#include <string_view>

#include "libcore/json/json.h"

namespace megalith {

/// What Python's json.dumps(value, indent=4) gives: ASCII, with \u escapes. Bytes that are not UTF-8 are
/// escaped as Python reads them in a path (surrogateescape). `depth`: how many objects and lists the value is
/// in, for its part of a larger text.
void append_python_json(std::string& out, const Json& value, int depth = 0);

/// Python's repr() of a float.
std::string python_repr(double value);
/// Python's repr() of a str and of a list of str. Of the characters that Python does not print, only line
/// feeds and tabs are escaped.
std::string python_repr(std::string_view text);
std::string python_repr(std::span<const std::string> texts);

}  // namespace megalith
