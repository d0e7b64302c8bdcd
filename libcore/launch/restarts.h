#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libcore/launch/server_ranks.h"

namespace megalith {

/// When ranks that failed are started again, and how they then resume.
struct RestartRules {
  int most = 0;  // restarts
  /// The words that make the command resume from the newest checkpoint, if one was completed since the last
  /// call, or, at the first call, since the run began; otherwise nothing.
  std::function<std::optional<std::vector<std::string>>()> new_checkpoint = {};
};

/// Runs run_server_ranks() again, with the words of the newest checkpoint added, until the ranks end without
/// a failure. Returns an exit code as soon as the ranks were told to stop, a rank ended with 64 to 66, three
/// starts in a row completed no checkpoint, or there were `most` restarts; the log says which.
int run_restarted_ranks(ServerRanks, RankCommand, const RestartRules&, const StopSignal& stop);

}  // namespace megalith
