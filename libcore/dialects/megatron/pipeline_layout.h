#pragma once

#include <string>
#include <vector>

namespace megalith {

/// Reads a table in Megatron-LM's notation, such as Et*7|t*8|t*7L. Returns the number of layers of each
/// stage; the number of stages may be 1 to `most`. kUsage for anything else; `place` names the option or
/// argument.
std::vector<int> stages_of_layout(const std::string& layout, int most, const std::string& place);

}  // namespace megalith
