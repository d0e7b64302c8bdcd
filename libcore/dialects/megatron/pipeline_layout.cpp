#include "libcore/dialects/megatron/pipeline_layout.h"

#include <cstdint>
#include <optional>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {

std::vector<int> stages_of_layout(const std::string& layout, int most, const std::string& place) {
  const std::vector<std::string> stages = split(layout, '|');
  std::vector<int> layers;
  for (const std::string& stage : stages) {
    std::string_view rest = stage;
    if (layers.empty() && rest.starts_with('E')) rest.remove_prefix(1);
    if (layers.size() + 1 == stages.size() && rest.ends_with('L')) rest.remove_suffix(1);
    std::optional<int64_t> count;
    if (rest.starts_with("t*"))
      count = parse_int(rest.substr(2));
    else if (rest.find_first_not_of('t') == std::string_view::npos)
      count = static_cast<int64_t>(rest.size());
    if (!count || *count < 1 || *count > most)
      fail(ErrorKind::kUsage, place, ' ', quote(layout), ": stage ", quote(stage),
           " is not planned; wanted E before the first, L after the last, and t*N in each, such as "
           "Et*7|t*8|t*7L");
    layers.push_back(static_cast<int>(*count));
  }
  return layers;
}

}  // namespace megalith
