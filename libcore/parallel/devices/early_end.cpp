#include "libcore/parallel/devices/early_end.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/parallel/devices/wait_report.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/group_call.h"

namespace megalith {
namespace {

using Clock = std::chrono::steady_clock;

// The longest wait for the others' calls, to compare them.
constexpr std::chrono::milliseconds kToCompare(5000);
// After NCCL has noticed the loss of a rank, the hosts get this long to notice it too.
constexpr std::chrono::seconds kToNotice(1);
constexpr std::chrono::milliseconds kBetweenLooks(5);

}  // namespace

EarlyEnd::EarlyEnd(Communicator& host, DeviceGroups& groups, Place place)
    : host_(host),
      groups_(groups),
      place_(std::move(place)),
      run_(run_watch_of(host)),
      to_compare_(host.split("calls of devices", 0, host.rank())),
      guard_(run_, run_.name_of(run_.rank_at(host.rank()))) {}

void EarlyEnd::check_alive(const Place& place) {
  if (run_.stopped()) {
    const std::string where = place();
    end_groups();
    throw Aborted(concat(where, ": stopped: ", run_.why_stopped()));
  }
  if (ended_) throw Aborted(concat(place(), ": stopped: this rank has failed"));
}

void EarlyEnd::end_groups() noexcept {
  ended_ = true;
  groups_.abort();
  guard_.stand_down();
}

void EarlyEnd::give_up() noexcept {
  try {
    host_.abort(run_.name_of(run_.rank_at(host_.rank())) + " failed");
  } catch (...) {  // the groups must end in any case
  }
  end_groups();
}

void EarlyEnd::stop(const std::string& words) {
  if (run_.stopped()) check_alive(place_);
  const std::string message = concat(place_(), ": ", words);
  host_.abort(message);
  end_groups();
  throw Error(ErrorKind::kComm, message);
}

void EarlyEnd::stop_by_nccl(const std::string& words) {
  const Clock::time_point deadline = Clock::now() + kToNotice;
  while (!run_.stopped() && Clock::now() < deadline) std::this_thread::sleep_for(kBetweenLooks);
  stop(words);
}

void EarlyEnd::stop_by_absence(const std::vector<int>& left) {
  stop(peer_left_text(names_of(left)));
}

void EarlyEnd::stop_late() {
  const std::chrono::milliseconds timeout = run_.timeout();
  if (const RunWatch::Absent absent = run_.absent(); !absent.ranks.empty())
    stop(timed_out_text(
        timeout, names_of(absent.ranks) +
                     (absent.silent ? ", which does not answer" : ", which does not wait for its device")));
  const std::string differs = difference();
  stop(differs.empty() ? timed_out_text(timeout, "the devices of ranks that all wait in the same calls")
                       : concat("timed out: ", differs));
}

std::string EarlyEnd::names_of(const std::vector<int>& ranks) const {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(run_.name_of(rank));
  return join(names, ", ");
}

/// All ranks wait for their devices, and all come here when their time is over. That of a rank whose calls
/// still ended when others already waited is over later; they wait half as long again for it.
std::string EarlyEnd::difference() {
  std::string where = place_();
  run_.hurry(std::min(run_.timeout() / 2, kToCompare));
  try {
    return differing_call(exchange_values(*to_compare_, groups_.report()),
                          [this](int rank) { return run_.name_of(rank); });
  } catch (const Error&) {
    check_alive([&where] { return where; });
    throw;
  }
}

}  // namespace megalith
