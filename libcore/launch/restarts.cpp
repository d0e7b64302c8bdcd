#include "libcore/launch/restarts.h"

#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/launch/socket.h"

namespace megalith {
namespace {

constexpr int kStartsWithoutCheckpoint = 3;

/// Decides after each failure whether the ranks start again.
class Restarts {
 public:
  explicit Restarts(const RestartRules& rules) : rules_(rules) {}

  bool allows_another(const RankEnds& ends) {
    if (const auto words = rules_.new_checkpoint()) {
      words_ = *words;
      in_vain_ = 0;
      resumes_ = true;
    } else {
      ++in_vain_;
    }
    if (const std::string why = objection(ends); !why.empty()) {
      log("the ranks are not started again: ", why);
      return false;
    }
    log("restart ", ++done_, " of at most ", rules_.most, ": all ranks start again, ",
        resumes_ ? "from the newest checkpoint" : "where the run began: there is no checkpoint yet",
        words_.empty() ? "" : concat(" (", join(words_, " "), ")"));
    return true;
  }
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::string objection(const RankEnds& ends) const {
    if (ends.refusal != 0)
      return concat("one ended with exit code ", ends.refusal, ", and the same command would again");
    if (in_vain_ == kStartsWithoutCheckpoint)
      return concat("they failed ", in_vain_, " times without a new checkpoint");
    if (done_ == rules_.most) return concat("--restarts ", rules_.most, " allows no more");
    return {};
  }

  const RestartRules& rules_;
  std::vector<std::string> words_ = {};
  bool resumes_ = false;
  int done_ = 0, in_vain_ = 0;
};

}  // namespace

int run_restarted_ranks(ServerRanks ranks, RankCommand command, const RestartRules& rules,
                        const StopSignal& stop) {
  const std::vector<std::string> given = command.arguments;
  Restarts restarts(rules);
  for (;; ++command.start) {
    const RankEnds ends = run_server_ranks(ranks, command, stop);
    if (ends.code == 0 || ends.stopped || stop.asked()) return ends.code;
    if (!restarts.allows_another(ends)) return ends.refusal != 0 ? ends.refusal : ends.code;
    command.arguments = given;
    command.arguments.insert(command.arguments.end(), restarts.words().begin(), restarts.words().end());
    if (ranks.any_port) ranks.port = free_port(ranks.address);
  }
}

}  // namespace megalith
