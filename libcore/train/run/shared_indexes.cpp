#include "libcore/train/run/shared_indexes.h"

#include <algorithm>
#include <filesystem>

#include "libcore/io/files/temporary_folder.h"
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

constexpr const char* kFolder = "megalith-indexes";

/// Whether a folder that another rank named may be removed: only if a rank made it in the folder for
/// temporary files.
bool is_temporary(const std::filesystem::path& folder) {
  return !folder.empty() && folder.parent_path() == temporary_folder() &&
         folder.filename().string().find(kFolder) != std::string::npos;
}

}  // namespace

// A member owns the temporary folder, so that it is removed even when the exchange throws.
SharedIndexes::SharedIndexes(Communicator& ranks, const std::vector<RankPlace>& places,
                             const std::string& cache)
    : maker_(maker_for(places, ranks.rank())), makes_(maker_ == ranks.rank()), folder_(cache) {
  if (makes_ && cache.empty() && ranks_beside(places, ranks.rank()) > 1) {
    own_.emplace(temporary_folder() / kFolder);
    folder_ = own_->path();
    // Whatever the umask is: nothing is kept in a folder in which others may write.
    std::filesystem::permissions(own_->path(), std::filesystem::perms::owner_all);
  }
  folder_ = exchange_values(ranks, folder_)[static_cast<size_t>(maker_)];
  if (cache.empty() && is_temporary(folder_)) made_here_ = folder_;
}

SharedIndexes::~SharedIndexes() {
  std::error_code ignored;
  if (!made_here_.empty()) std::filesystem::remove_all(made_here_, ignored);
}

}  // namespace megalith
