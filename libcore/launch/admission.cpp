#include "libcore/launch/admission.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/resource.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/hash/hmac.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

using std::chrono::steady_clock;

constexpr auto kTimeToSayHello = std::chrono::seconds(2);  // within which a connection must prove who it is
constexpr auto kTimeToTell = std::chrono::seconds(1);      // longest wait until a rank takes an answer
constexpr int kAtOnce = 64;  // connections accepted before those that wait are checked again
constexpr size_t kMostWaiting = 128, kFewestWaiting = 8;  // of each kind, see Candidates::make_room()
constexpr uint64_t kOtherFiles = 64;                      // files that this process has open or needs besides
constexpr int64_t kLogged = 20;  // refusals that are logged; the others are only counted
constexpr size_t kMaxReason = 500;

size_t room_beside(int world) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return kFewestWaiting;
  const uint64_t needed = static_cast<uint64_t>(world) + kOtherFiles;
  const uint64_t left = files.rlim_cur > needed ? files.rlim_cur - needed : 0;
  return std::clamp<size_t>(left / 2, kFewestWaiting, kMostWaiting);
}

/// A connection that has not proved yet who it is.
struct Candidate {
  Socket socket;
  std::string from;  // its address
  Deadline deadline = steady_clock::now() + kTimeToSayHello;
  std::string bytes = {};
  std::optional<ProvenMessages> messages = {};  // set once it has sent its greeting
};

/// The connections that have not proved yet who they are, oldest first.
class Candidates {
 public:
  explicit Candidates(int world) : world_(world), room_(room_beside(world)) {}

  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  void add(Socket socket) {
    std::string from = socket.peer_address();
    list_.push_back({.socket = std::move(socket), .from = std::move(from)});
  }
  /// Calls `is_settled` for each, and removes those for which it returns true.
  template <class IsSettled>
  void settle(const IsSettled& is_settled) {
    std::erase_if(list_, is_settled);
  }
  /// Closes the oldest connection to free a file, but not before it has had some time to prove who it is.
  void free_a_file() {
    constexpr auto kLeast = std::chrono::milliseconds(100), kPause = std::chrono::milliseconds(5);
    if (list_.empty())
      fail(ErrorKind::kIo, "rank 0 may not open enough files for ", world_,
           " ranks; raise the limit (ulimit -n)");
    if (list_.front().deadline - kTimeToSayHello + kLeast > steady_clock::now())
      std::this_thread::sleep_for(kPause);
    else if (!drop_oldest(false))
      drop_oldest(true);
  }
  /// Drops connections beyond `room_`. Connections that have sent the greeting are counted apart from the
  /// others. So connections that send nothing, which anybody can open in large numbers, cannot displace a
  /// rank whose hello is on its way.
  void make_room() {
    for (const bool greeted : {false, true}) {
      const auto such = [greeted](const Candidate& c) { return c.messages.has_value() == greeted; };
      auto many = static_cast<size_t>(std::count_if(list_.begin(), list_.end(), such));
      for (; many > room_; --many) drop_oldest(greeted);
    }
  }
  void refuse(const std::string& whom, const std::string& why) {
    if (++refused_ <= kLogged) warn("rendezvous: refused ", whom, ": ", printable(why, kMaxReason));
  }
  void log_how_many_were_refused() const {
    if (refused_ > kLogged) warn("rendezvous: refused ", refused_ - kLogged, " more connections");
  }

 private:
  /// Drops the oldest connection that has sent the greeting (`greeted`) or has not. False if there is none.
  bool drop_oldest(bool greeted) {
    const auto oldest = std::find_if(list_.begin(), list_.end(), [greeted](const Candidate& c) {
      return c.messages.has_value() == greeted;
    });
    if (oldest == list_.end()) return false;
    refuse(oldest->from, "too many connections are silent, and this is the oldest");
    list_.erase(oldest);
    return true;
  }

  const int world_;
  const size_t room_;  // for connections of each kind
  std::vector<Candidate> list_;
  int64_t refused_ = 0;
};

class Admission {
 public:
  Admission(Socket listener, const AdmissionOptions& options)
      : listener_(std::move(listener)),
        options_(options),
        ranks_(static_cast<size_t>(options.mine.world)),
        told_(ranks_.size()),
        candidates_(options.mine.world) {}

  std::vector<RankChannel> admit_all() {
    for (std::vector<std::string> absent = missing(); !absent.empty(); absent = missing()) {
      if (steady_clock::now() >= options_.deadline) give_up(absent);
      serve();
      stop_if_asked();
    }
    candidates_.log_how_many_were_refused();
    if (!differences_.empty()) throw differing();
    for (size_t rank = 1; rank < ranks_.size(); ++rank) welcome(rank);
    return std::move(ranks_);
  }

 private:
  /// The ranks that are not connected and have not been told why there is no run.
  std::vector<std::string> missing() const {
    std::vector<std::string> ranks;
    for (size_t rank = 1; rank < ranks_.size(); ++rank)
      if (!ranks_[rank].open() && !told_[rank]) ranks.push_back(std::to_string(rank));
    return ranks;
  }

  void serve() {
    std::vector<pollfd> wanted = {{.fd = listener_.descriptor(), .events = POLLIN, .revents = 0}};
    // The ranks with open connections: poll() accepts no more entries than the process may open files.
    std::vector<size_t> here;
    const auto want = [&](const Socket& socket) {
      wanted.push_back({.fd = socket.descriptor(), .events = POLLIN, .revents = 0});
    };
    for (size_t rank = 1; rank < ranks_.size(); ++rank) {
      if (!ranks_[rank].open()) continue;
      here.push_back(rank);
      want(ranks_[rank].socket());
    }
    for (const Candidate& candidate : candidates_) want(candidate.socket);
    ::poll(wanted.data(), wanted.size(), 100);
    for (size_t i = 0; i < here.size(); ++i)
      if (wanted[1 + i].revents != 0) drop(here[i]);
    if (wanted[0].revents != 0) accept_some();
    candidates_.settle([this](Candidate& candidate) { return is_settled(candidate); });
    candidates_.make_room();
  }

  void accept_some() {
    for (int i = 0; i < kAtOnce; ++i) {
      Socket socket = listener_.accept();
      if (socket.open()) {
        candidates_.add(std::move(socket));
      } else {
        if (errno == EMFILE || errno == ENFILE) candidates_.free_a_file();
        return;
      }
    }
  }

  /// Called when a waiting rank's socket is readable: such a rank sends nothing, so it has disconnected.
  void drop(size_t rank) {
    warn("rendezvous: rank ", rank, " disconnected before all ranks had joined");
    ranks_[rank] = {};
  }

  /// Whether the connection has been admitted or refused.
  bool is_settled(Candidate& candidate) {
    try {
      const auto some = candidate.socket.receive_some(size_t{1} << 16);
      if (!some) fail(ErrorKind::kData, "it disconnected before it identified itself");
      candidate.bytes += *some;
      if (!candidate.messages) greet(candidate);
      const auto hello =
          candidate.messages ? candidate.messages->take(candidate.bytes, kMaxHello) : std::nullopt;
      if (hello) admit(candidate, decode_hello(*hello));
      if (!hello && steady_clock::now() >= candidate.deadline)
        fail(ErrorKind::kData, "it sent no hello in time");
      return hello.has_value();
    } catch (const Unproven&) {
      candidates_.refuse(candidate.from, "it has another job token (MEGALITH_JOB_TOKEN)");
      answer(candidate, ProvenMessages::unproven());
    } catch (const Error& error) {
      candidates_.refuse(candidate.from, error.what());
    }
    return true;
  }

  void greet(Candidate& candidate) const {
    if (!may_be_greeting(candidate.bytes))
      fail(ErrorKind::kData, "not a rank of this program: it began with ",
           quote_name(candidate.bytes.substr(0, kGreeting.size())));
    if (candidate.bytes.size() < kGreetingBytes) return;
    const std::string theirs = candidate.bytes.substr(0, kGreetingBytes);
    const std::string mine = concat(kGreeting, random_bytes(kNonceBytes));
    candidate.bytes.erase(0, kGreetingBytes);
    candidate.messages.emplace(options_.token, ProvenMessages::Greetings{.first = mine, .other = theirs},
                               RankSide::kFirst);
    candidate.socket.send(mine, steady_clock::now());
  }

  /// Sends an answer without waiting, since rank 0 waits for no stranger. The part that cannot be sent at
  /// once is lost.
  static void answer(const Candidate& candidate, const std::string& packed) {
    try {
      candidate.socket.send(packed, steady_clock::now());
    } catch (const Error&) {  // the stranger has gone
    }
  }

  void admit(Candidate& candidate, const RankHello& hello) {
    std::string why = refusal(options_.mine, hello);
    const auto rank = static_cast<size_t>(hello.rank);
    if (why.empty() && (rank == 0 || ranks_[rank].open()))
      why = concat("there is already a rank ", rank, ", from ",
                   rank == 0 ? listener_.local_address() : ranks_[rank].socket().peer_address());
    if (!why.empty()) {
      candidates_.refuse(concat("rank ", hello.rank, " of ", candidate.from), why);
      answer(candidate, candidate.messages->packed(encode_failure({ErrorKind::kUsage, why})));
      return;
    }
    RankChannel channel(std::move(candidate.socket), std::move(*candidate.messages));
    channel.send(kWelcome, steady_clock::now() + kTimeToTell);
    ranks_[rank] = std::move(channel);
    compare_options(hello);
  }

  /// Once the options of one rank differ, tells all connected ranks. Ranks that join later are told when they
  /// join.
  void compare_options(const RankHello& hello) {
    const bool first = differences_.empty();
    if (const std::string list = option_differences(options_.mine, hello); !list.empty())
      differences_ = first ? list : printable(concat(differences_, "; ", list), 2 * kMaxReason);
    if (differences_.empty()) return;
    if (first) warn("rendezvous: ", differing().what(), "; ranks that join later are told, too");
    tell_all(differing());
  }

  Error differing() const {
    return {ErrorKind::kUsage, "the ranks were not given the same options: " + differences_};
  }

  /// Sends the error to all connected ranks and disconnects them.
  void tell_all(const Error& error) {
    for (size_t rank = 1; rank < ranks_.size(); ++rank) {
      if (!ranks_[rank].open()) continue;
      try {
        ranks_[rank].send(encode_failure(error), steady_clock::now() + kTimeToTell);
      } catch (const Error& failure) {
        warn("rendezvous: rank ", rank, " could not be told why: ", failure.what());
      }
      ranks_[rank] = {};
      told_[rank] = true;
    }
  }

  [[noreturn]] void give_up(const std::vector<std::string>& absent) {
    if (!differences_.empty()) throw differing();
    const Error error(
        ErrorKind::kComm,
        concat(absent.size() == 1 ? "rank " : "ranks ", join(absent, ", "), " did not connect to ",
               listener_.local_address(), ':', listener_.local_port(), " within ",
               format_duration(static_cast<double>(options_.timeout.count()) / 1000),
               "; look at the log of each, or raise --distributed-timeout-minutes"));
    tell_all(error);
    throw Error(error);
  }

  void welcome(size_t rank) {
    try {
      ranks_[rank].send(kWelcome, options_.deadline);
    } catch (const Error& error) {
      fail(ErrorKind::kComm, "rendezvous: rank ", rank, ": ", error.what());
    }
  }

  Socket listener_;
  const AdmissionOptions& options_;
  std::vector<RankChannel> ranks_;
  std::vector<bool> told_;
  Candidates candidates_;
  std::string differences_ = {};
};

}  // namespace

std::vector<RankChannel> admit_ranks(Socket listener, const AdmissionOptions& options) {
  return Admission(std::move(listener), options).admit_all();
}

}  // namespace megalith
