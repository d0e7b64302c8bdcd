#pragma once

#include <string>
#include <string_view>

namespace megalith {

// Messages hold names from outside: of files and folders, and values of options. They also hold line ends and
// tabs of our own, which must stay. So names with line ends or tabs are noted where they enter the program,
// and escaped wherever a message has them. (Other control characters need no list: we write none.)

/// Notes the parts of a path or of a word of the command line that hold line ends or tabs. Any thread.
void note_outside_name(std::string_view path);

/// `text` with the line ends and tabs of the noted names escaped, as printable() does.
std::string escape_outside_names(std::string text);

}  // namespace megalith
