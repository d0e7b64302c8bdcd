#include "libcore/train/run/shared_indexes.h"

#include <algorithm>
#include <filesystem>

#include "libcore/parallel/exchange.h"

namespace megalith {
namespace {

/// The first rank on the machine of `rank`.
int maker_for(const std::vector<RankPlace>& places, int rank) {
  const std::string& machine = places[static_cast<size_t>(rank)].machine;
  const auto first = std::find_if(places.begin(), places.end(),
                                  [&](const RankPlace& place) { return place.machine == machine; });
  return static_cast<int>(first - places.begin());
}

}  // namespace

// A member owns the temporary folder, so that it is removed even when the exchange throws.
SharedIndexes::SharedIndexes(Communicator& ranks, const std::vector<RankPlace>& places,
                             const std::string& cache)
    : makes_(maker_for(places, ranks.rank()) == ranks.rank()), folder_(cache) {
  if (makes_ && cache.empty() && ranks_beside(places, ranks.rank()) > 1) {
    own_.emplace(std::filesystem::temp_directory_path() / "megalith-indexes");
    folder_ = own_->path();
  }
  folder_ = exchange_values(ranks, folder_)[static_cast<size_t>(maker_for(places, ranks.rank()))];
}

}  // namespace megalith
