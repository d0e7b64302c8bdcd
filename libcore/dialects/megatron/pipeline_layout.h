#pragma once

#include <string>
#include <vector>

namespace megalith {

/// The layers of each stage of a table in Megatron-LM's notation, such as Et*7|t*8|t*7L: from 1 to `most`.
/// kUsage for anything else; `place` names the option or argument.
std::vector<int> stages_of_layout(const std::string& layout, int most, const std::string& place);

}  // namespace megalith
