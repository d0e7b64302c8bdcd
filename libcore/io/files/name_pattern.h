#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// Whether a word may be a pattern of names (glob(7)): it has a *, ? or [.
bool is_pattern(std::string_view word);

/// The existing paths that match a pattern of names, in the order of their bytes; empty if none does. Throws
/// kSystem if there is no memory for them.
std::vector<std::string> paths_matching(const std::string& pattern);

}  // namespace megalith
