#include "libcore/train/run/run_end.h"

#include <vector>

#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/parallel/exchange.h"

namespace megalith {

RunEnd::RunEnd(const RankInput& in) : in_(in), began_(std::chrono::steady_clock::now()) {}

bool RunEnd::wanted() const {
  const auto minutes = in_.config.train.exit_minutes;
  const bool first = in_.world.rank() == 0;
  return in_.stop.asked() ||
         (first && minutes && seconds_since(began_) > 60.0 * static_cast<double>(*minutes));
}

void RunEnd::note_worse(const TrainState& state) {
  const int64_t patience = in_.tuning->patience;
  no_better_ = patience > 0 && state.worse_evaluations >= patience;
}

// Checks the reasons in the order of Megatron's checkpoint_and_decide_exit.
bool RunEnd::due(const TrainState& state) {
  if (agreed_) signal_ = agreed_signal();
  if (!signal_.empty()) {
    reason_ = signal_;
  } else if (no_better_) {
    log("exiting program at iteration ", state.iteration, ": ", state.worse_evaluations,
        " evaluations were no better than ",
        in_.tuning->by_accuracy ? concat("the accuracy ", format_fixed(1 - *state.best_loss, 6))
                                : concat(*state.best_loss),
        " of iteration ", state.best_iteration);
    reason_ = "early-stopping-patience";
  } else if (agreed_) {
    log("exiting program after ", format_duration(seconds_since(began_)));
    reason_ = "exit-duration-in-mins";
  } else if (const auto interval = in_.config.train.exit_interval;
             interval && state.iteration % *interval == 0) {
    log("exiting program at iteration ", state.iteration);
    reason_ = "exit-interval";
  }
  return ended_early();
}

// The name of the signal that ends the run, from the first rank that received one. Empty if no rank did: then
// the time is up.
std::string RunEnd::agreed_signal() const {
  for (const std::string& name : exchange_values(in_.world, std::string(in_.stop.name())))
    if (!name.empty()) return name;
  return {};
}

}  // namespace megalith
