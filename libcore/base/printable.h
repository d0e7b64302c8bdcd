#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace megalith {

/// What another program wrote, for a message: at most `max` bytes of it, then "…" if there was more. Control
/// characters and invalid UTF-8 are escaped (\x1b), so that a terminal obeys none of them.
std::string printable(std::string_view text, size_t max);

/// A name from outside (the environment, a file, a peer) in quotes, escaped as quote() does and cut after 200
/// bytes.
std::string quote_name(std::string_view name);

}  // namespace megalith
