#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace megalith {

/// Columns to write for: those of the terminal that the descriptor is, else $COLUMNS, else 80.
size_t columns_of(int descriptor);

/// As many whole UTF-8 characters of `text` as fit `columns`, if each takes one.
std::string_view fitting(std::string_view text, size_t columns);

/// Text in lines of at most `columns` characters, broken at blanks; a longer word has a line of its own.
/// Lines after the first begin with `indent`, lines before the last end in `joint`, both counted in; a joint
/// of " \\" keeps a shell's command one command. A text that ends a line itself is wrapped line by line.
std::string wrapped(std::string_view text, size_t columns, std::string_view indent = "",
                    std::string_view joint = "");

}  // namespace megalith
