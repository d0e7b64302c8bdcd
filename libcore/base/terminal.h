#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace megalith {

/// The line width for output, in characters: the width of the terminal behind `descriptor`, else $COLUMNS,
/// else 80.
size_t columns_of(int descriptor);

/// The beginning of `text` that fits in `columns`, cut between UTF-8 characters; each counts as one column.
std::string_view fitting(std::string_view text, size_t columns);

/// Text in lines of at most `columns` characters, broken at blanks; a longer word gets its own line. Lines
/// after the first begin with `indent`, lines before the last end in `joint`; both count towards the width. A
/// joint of " \\" keeps a shell command one command. Line ends in the text are kept.
std::string wrapped(std::string_view text, size_t columns, std::string_view indent = "",
                    std::string_view joint = "");

/// Text from another program, made safe for a message: at most `max` bytes of it, then "…" if there was more.
/// Control characters and invalid UTF-8 are escaped (\x1b), so that no terminal obeys them.
std::string printable(std::string_view text, size_t max);

/// A message of lines, each printable(); line ends and tabs stay. At most `max` bytes of each line.
std::string printable_lines(std::string_view text, size_t max);

/// A name from outside (the environment, a file, a peer) in quotes, escaped as quote() does and cut after 200
/// bytes.
std::string quote_name(std::string_view name);

}  // namespace megalith
