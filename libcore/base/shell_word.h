#pragma once

#include <string>
#include <string_view>

namespace megalith {

/// Quotes a word for a POSIX shell: unchanged if it has no character that is special to the shell, otherwise
/// between double quotes. A word with control characters or invalid UTF-8 is written $'\x1b', as bash, zsh
/// and POSIX 2024 have it, so that no terminal obeys it.
std::string shell_word(std::string_view word);

/// Quotes any text as one word of a POSIX shell, in single quotes, inside which the shell expands nothing.
std::string single_quoted(std::string_view text);

}  // namespace megalith
