#pragma once

#include <string>
#include <string_view>

namespace megalith {

/// Finds a value that some programs write as a number and that JSON does not have: NaN, Infinity, -Infinity,
/// or a number beyond a double, such as 1e999. Returns its path and itself, for a message:
/// "rope_scaling.factor is NaN"; empty if there is none. `text` need not be valid JSON.
std::string find_no_number(std::string_view text);

}  // namespace megalith
