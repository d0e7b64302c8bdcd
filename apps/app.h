#pragma once

#include <functional>

namespace megalith {

/// What every main() does: runs `body` and turns an Error into one line on stderr, `NAME: error: TEXT`, and its exit code.
/// Returns body's value when nothing is thrown; 70 for an exception that is not ours, 74 when stdout cannot be written.
int run_app(const char* name, const std::function<int()>& body);

}  // namespace megalith
