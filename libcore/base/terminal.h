#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace megalith {

/// The width of output lines, in characters: that of the terminal behind `descriptor`; if it is no terminal,
/// $COLUMNS; if that is not set, 80.
size_t columns_of(int descriptor);

/// The longest beginning of `text` that fits in `columns`. It does not end inside a UTF-8 character; each
/// character counts as one column.
std::string_view fitting(std::string_view text, size_t columns);

/// Breaks text at blanks into lines of at most `columns` characters; a longer word gets its own line. Every
/// line after the first begins with `indent`, and every line before the last ends in `joint`; both count
/// towards the width. With a joint of " \\", a broken shell command stays one command. Line ends in the text
/// are kept.
std::string wrapped(std::string_view text, size_t columns, std::string_view indent = "",
                    std::string_view joint = "");

/// Makes text from another program safe for a message: keeps at most `max` bytes, followed by "…" if there
/// were more. Control characters and invalid UTF-8 are escaped (\x1b), so that no terminal obeys them.
std::string printable(std::string_view text, size_t max = std::string_view::npos);

/// Makes each line of a report printable(). Line ends and tabs are kept.
std::string printable_lines(std::string_view text);

/// Makes a message with names from outside printable(), with at most `max` bytes per line. No name can begin
/// a line at its first column: a line end is kept only before two blanks, with which the further lines of our
/// own messages begin. Other line ends, and tabs, are escaped.
std::string printable_message(std::string_view text, size_t max = std::string_view::npos);

/// A name from outside (the environment, a file, a peer) in quotes, escaped as quote() does and truncated
/// after 200 bytes.
std::string quote_name(std::string_view name);

}  // namespace megalith
