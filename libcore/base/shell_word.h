#pragma once

#include <string>
#include <string_view>

namespace megalith {

/// The word for a command line of a POSIX shell: unchanged if no character is special there, otherwise
/// between double quotes.
std::string shell_word(std::string_view word);

/// Any text as one word of a POSIX shell, between single quotes, where the shell expands nothing.
std::string single_quoted(std::string_view text);

}  // namespace megalith
