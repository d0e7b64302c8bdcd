#include "libcore/parallel/devices/device_world.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "libcore/base/text.h"
#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/parallel/devices/wait_report.h"
#include "libcore/parallel/exchange.h"

namespace megalith {
namespace {

// For this long the host polls its device without a sleep. Then it leaves the core to others between polls.
constexpr std::chrono::milliseconds kMoment(1);
constexpr std::chrono::microseconds kBetweenPolls(50);
// Looks at NCCL and the other ranks are rarer: each asks every group of this rank.
constexpr std::chrono::milliseconds kBetweenLooks(5);
// Work that a rank took part in before it left may still end for this long.
constexpr std::chrono::milliseconds kGrace(500);
// The longest wait for the others' calls, to compare them.
constexpr std::chrono::milliseconds kToCompare(5000);
// After NCCL has noticed the loss of a rank, the hosts get this long to notice it too.
constexpr std::chrono::seconds kToNotice(1);

}  // namespace

/// One wait of the host for its device.
struct DeviceWorld::Wait {
  explicit Wait(RunWatch& watch) : run(watch) {}
  ~Wait() {
    if (told) run.wait_for_device(false);
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  RunWatch& run;
  const Clock::time_point begin = Clock::now();
  Clock::time_point moved = begin, next_look = begin + kMoment;  // `moved`: when a call was last seen to end
  std::vector<uint64_t> progress;
  bool told = false;
};

DeviceWorld::DeviceWorld(Communicator& host, Backend& backend, const DeviceCommOptions& options)
    : host_(host),
      backend_(backend),
      options_(options),
      run_(run_watch_of(host)),
      to_compare_(host.split("calls of devices", 0, host.rank())),
      guard_(run_, run_.name_of(run_.rank_at(host.rank()))) {
  set_device_watch(backend_, this);
}

DeviceWorld::~DeviceWorld() {
  set_device_watch(backend_, nullptr);
}

// ---- waits

void DeviceWorld::await(const std::function<bool()>& done) {
  if (!in_own_thread()) {
    while (!done()) std::this_thread::sleep_for(kBetweenPolls);
    return;
  }
  Wait wait(run_);
  while (!done()) {
    if (ended_) check_alive([this] { return place(); });
    const Clock::time_point now = Clock::now();
    if (now >= wait.next_look) look(wait);
    if (now < wait.begin + kMoment)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kBetweenPolls);
  }
}

void DeviceWorld::look(Wait& wait) {
  const Clock::time_point now = Clock::now();
  wait.next_look = now + kBetweenLooks;
  if (!std::exchange(wait.told, true)) run_.wait_for_device(true);
  check_alive([this] { return place(); });
  check_groups();
  if (std::vector<uint64_t> at = progress(); at != wait.progress) {
    wait.progress = std::move(at);
    wait.moved = now;
  }
  const bool for_others = doing_ != nullptr || std::any_of(wait.progress.begin(), wait.progress.end(),
                                                           [](uint64_t number) { return number != 0; });
  if (!for_others) return;
  if (now - wait.moved > kGrace)
    if (const std::vector<int> left = run_.left(); !left.empty())
      stop(concat(place(), ": ", peer_left_text(names_of(left))));
  if (now - wait.moved > run_.timeout()) give_up_late();
}

std::string DeviceWorld::names_of(const std::vector<int>& ranks) const {
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(run_.name_of(rank));
  return join(names, ", ");
}

/// The numbers of the first calls that are not done, of all groups.
std::vector<uint64_t> DeviceWorld::progress() const {
  std::vector<uint64_t> numbers;
  for (DeviceCalls* const calls : groups_) numbers.push_back(calls->pending_number());
  return numbers;
}

void DeviceWorld::check_groups() {
  for (DeviceCalls* const calls : groups_)
    if (const std::string problem = calls->group().problem(); !problem.empty())
      stop_by_nccl(concat(place(), ": ", problem));
}

/// The call that this rank waits for.
std::string DeviceWorld::place() const {
  if (doing_ != nullptr) return (*doing_)();
  for (DeviceCalls* const calls : groups_)
    if (const auto pending = calls->pending())
      return concat(calls->members().name, ": ", run_.name_of(calls->members().rank), ": ",
                    pending->call.substr(0, pending->call.find(' ')), ", call ", pending->number);
  return concat(host_.name(), ": ", run_.name_of(run_.rank_at(host_.rank())));
}

// ---- the end

void DeviceWorld::check_alive(const Place& place) {
  if (run_.stopped()) {
    const std::string where = place();
    end_groups();
    throw Aborted(concat(where, ": stopped: ", run_.why_stopped()));
  }
  if (ended_) throw Aborted(concat(place(), ": stopped: this rank has failed"));
}

void DeviceWorld::attempt(const Place& place, const std::function<void()>& work) {
  if (!in_own_thread())
    fail(ErrorKind::kInternal, place(), ": another thread than the rank's own calls NCCL");
  struct Doing {
    Doing(const Place*& doing, const Place& now) : doing_(doing), before_(std::exchange(doing, &now)) {}
    ~Doing() { doing_ = before_; }
    Doing(const Doing&) = delete;
    Doing& operator=(const Doing&) = delete;
    const Place*& doing_;
    const Place* const before_;
  };
  const Doing doing(doing_, place);
  try {
    work();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kComm || ended_) throw;
    stop_by_nccl(concat(place(), ": ", error.what()));
  }
}

/// Afterwards the device waits for no other rank.
void DeviceWorld::end_groups() noexcept {
  ended_ = true;
  std::vector<DeviceGroup*> groups;
  for (DeviceCalls* const calls : groups_) groups.push_back(&calls->group());
  if (!groups.empty()) groups.front()->abort(groups);
  guard_.stand_down();
}

void DeviceWorld::give_up() noexcept {
  try {
    host_.abort(run_.name_of(run_.rank_at(host_.rank())) + " failed");
  } catch (...) {  // the groups must end in any case
  }
  end_groups();
}

/// Stops the run unless another rank was first: the other ranks get the message, then this rank's groups end,
/// and it is thrown as kComm. In this order, since NCCL reports to other ranks that a group ends.
void DeviceWorld::stop(const std::string& message) {
  if (run_.stopped()) check_alive([this] { return place(); });
  host_.abort(message);
  end_groups();
  throw Error(ErrorKind::kComm, message);
}

/// NCCL may report the end of a rank first, but does not say which rank it is: the hosts get time to.
void DeviceWorld::stop_by_nccl(const std::string& message) {
  const Clock::time_point deadline = Clock::now() + kToNotice;
  while (!run_.stopped() && Clock::now() < deadline) std::this_thread::sleep_for(kBetweenLooks);
  stop(message);
}

void DeviceWorld::give_up_late() {
  const RunWatch::Absent absent = run_.absent();
  if (absent.ranks.empty()) compare_calls();
  const char* const how = absent.silent ? ", which does not answer" : ", which does not wait for its device";
  stop(concat(place(), ": ", timed_out_text(run_.timeout(), names_of(absent.ranks) + how)));
}

/// The first call of each group that is not done, in words.
WaitReport DeviceWorld::report() const {
  WaitReport report;
  for (DeviceCalls* const calls : groups_) {
    const auto& [name, rank, ranks] = calls->members();
    const auto pending = calls->pending().value_or(DeviceCalls::Pending{});
    report.groups.push_back({name, ranks, pending.number, pending.call});
  }
  return report;
}

/// All ranks wait for their devices, and all come here when their time is over. That of a rank whose calls
/// still ended when others already waited is over later; they wait half as long again for it.
void DeviceWorld::compare_calls() {
  const std::string where = place();
  const WaitReport mine = report();
  std::string differs;
  const std::chrono::milliseconds timeout = run_.timeout();
  run_.hurry(std::min(timeout / 2, kToCompare));
  try {
    differs =
        differing_call(exchange_values(*to_compare_, mine), [this](int rank) { return run_.name_of(rank); });
  } catch (const Error&) {
    check_alive([&where] { return where; });
    throw;
  }
  stop(concat(where, ": ",
              differs.empty()
                  ? timed_out_text(timeout, "the devices of ranks that all wait in the same calls")
                  : concat("timed out: ", differs)));
}

}  // namespace megalith
