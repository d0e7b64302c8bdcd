#include "libcore/launch/rendezvous.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <poll.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/io/run/stop_signal.h"
#include "libcore/launch/rank_hello.h"
#include "libcore/launch/socket.h"
#include "libcore/launch/torch_store.h"

namespace megalith {
namespace {

using std::chrono::steady_clock;

constexpr auto kTimeToSayHello = std::chrono::seconds(10);  // for a connection to send its hello
// The other ranks wait longer, so that rank 0 can name the ranks that did not join.
constexpr auto kAnswerTime = std::chrono::seconds(2);
constexpr size_t kMaxCandidates = 256;  // at a time
constexpr uint64_t kMaxExchanged = uint64_t{1} << 30;

// ---- frames: the length in 8 bytes (little-endian), then the bytes

std::string frame(std::string_view bytes) {
  std::string out;
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(bytes.size() >> shift);
  return out.append(bytes);
}

std::string receive_frame(const Socket& socket, Deadline deadline) {
  const std::string head = socket.receive(sizeof(uint64_t), deadline);
  uint64_t bytes = 0;
  for (size_t i = 0; i < head.size(); ++i) bytes |= uint64_t{static_cast<unsigned char>(head[i])} << (8 * i);
  if (bytes > kMaxExchanged)
    fail(ErrorKind::kComm, socket.peer_address(), " sent something other than a message of this program");
  return socket.receive(bytes, deadline);
}

/// Rank 0's answer to a hello: empty, or an error. It is JSON, as the hello is, so that programs of different
/// versions understand a refusal.
constexpr const char* kWelcome = "";

std::string answer_of(const Error& error) {
  Json answer = Json::object();
  answer.set("exit_code", exit_code(error.kind()));
  answer.set("message", error.what());
  return frame(answer.dump());
}

[[noreturn]] void fail_as(const std::string& answer, const std::string& where) {
  const Json error = Json::parse(answer, where + " the answer to a hello");
  const bool lost = error["exit_code"].as_int() == exit_code(ErrorKind::kComm);
  fail(lost ? ErrorKind::kComm : ErrorKind::kUsage, where, ' ', error["message"].as_string());
}

// ---- rank 0

/// Adds the rank to errors of its connection: an address alone tells a user little.
template <class Call>
void with_rank(size_t rank, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    fail(ErrorKind::kComm, "rendezvous: rank ", rank, ": ", error.what());
  }
}

struct Candidate {
  Socket socket;
  std::string bytes = {};
  Deadline deadline;  // for its hello
};

/// Rank 0's side until all ranks have joined.
class Admission {
 public:
  Admission(Socket listener, RankHello mine, Deadline deadline)
      : listener_(std::move(listener)),
        mine_(std::move(mine)),
        deadline_(deadline),
        ranks_(static_cast<size_t>(mine_.world)) {}

  /// Returns the connections in rank order; the first place is empty.
  std::vector<Socket> admit_all(std::chrono::milliseconds timeout) {
    while (!missing().empty()) {
      if (steady_clock::now() >= deadline_) {
        fail_all({ErrorKind::kComm,
                  concat(missing().size() == 1 ? "rank " : "ranks ", join(missing(), ", "),
                         " did not connect to ", listener_.local_address(), ':', listener_.local_port(),
                         " within ", format_duration(static_cast<double>(timeout.count()) / 1000),
                         "; look at the log of each, or raise --distributed-timeout-minutes")});
      }
      serve();
      stop_if_asked();
    }
    for (size_t rank = 1; rank < ranks_.size(); ++rank)
      with_rank(rank, [&] { ranks_[rank].send(frame(kWelcome), deadline_); });
    return std::move(ranks_);
  }

 private:
  std::vector<std::string> missing() const {
    std::vector<std::string> ranks;
    for (size_t rank = 1; rank < ranks_.size(); ++rank)
      if (!ranks_[rank].open()) ranks.push_back(std::to_string(rank));
    return ranks;
  }

  void serve() {
    std::vector<pollfd> wanted = {{.fd = listener_.descriptor(), .events = POLLIN, .revents = 0}};
    for (const Candidate& candidate : candidates_)
      wanted.push_back({.fd = candidate.socket.descriptor(), .events = POLLIN, .revents = 0});
    for (const Socket& socket : ranks_)
      wanted.push_back({.fd = socket.descriptor(), .events = POLLIN, .revents = 0});
    ::poll(wanted.data(), wanted.size(), 100);
    for (size_t rank = 1; rank < ranks_.size(); ++rank)
      if (ranks_[rank].open() && wanted[1 + candidates_.size() + rank].revents != 0) drop(rank);
    std::vector<Candidate> staying;
    for (Candidate& candidate : candidates_)
      if (!is_settled(candidate)) staying.push_back(std::move(candidate));
    candidates_ = std::move(staying);
    if (wanted[0].revents != 0) accept();
  }

  void accept() {
    Socket socket = listener_.accept();
    if (socket.open() && candidates_.size() < kMaxCandidates + ranks_.size())
      candidates_.push_back({.socket = std::move(socket), .deadline = steady_clock::now() + kTimeToSayHello});
  }

  /// An admitted rank sends nothing while it waits: it has disconnected.
  void drop(size_t rank) {
    warn("rendezvous: rank ", rank, " disconnected before all ranks had joined");
    ranks_[rank] = {};
  }

  /// Whether the connection has been admitted or refused.
  bool is_settled(Candidate& candidate) {
    const std::string from = candidate.socket.peer_address();
    try {
      const auto some = candidate.socket.receive_some(size_t{1} << 16);
      if (!some) fail(ErrorKind::kData, "it disconnected without sending anything");
      candidate.bytes += *some;
      if (const auto hello = decode_hello(candidate.bytes)) {
        admit(candidate, *hello);
        return true;
      }
      if (steady_clock::now() >= candidate.deadline) fail(ErrorKind::kData, "it sent no hello in time");
      return false;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kUsage) throw;  // all ranks fail
      warn("rendezvous: refused ", from, ": ", error.what());
      return true;
    }
  }

  void admit(Candidate& candidate, const RankHello& hello) {
    std::string why = refusal(mine_, hello);
    const auto rank = static_cast<size_t>(hello.rank);
    if (why.empty() && (rank == 0 || ranks_[rank].open()))
      why = concat("there is already a rank ", rank, ", from ",
                   rank == 0 ? listener_.local_address() : ranks_[rank].peer_address());
    if (!why.empty()) {
      warn("rendezvous: refused rank ", hello.rank, " of ", candidate.socket.peer_address(), ": ", why);
      candidate.socket.send(answer_of({ErrorKind::kUsage, why}), candidate.deadline);
      return;
    }
    ranks_[rank] = std::move(candidate.socket);
    if (const std::string list = option_differences(mine_, hello); !list.empty())
      fail_all({ErrorKind::kUsage, "the ranks were not given the same options: " + list});
  }

  /// Throws here and on all ranks that have joined.
  [[noreturn]] void fail_all(const Error& error) {
    for (size_t rank = 1; rank < ranks_.size(); ++rank) try {
        if (ranks_[rank].open()) ranks_[rank].send(answer_of(error), steady_clock::now() + kTimeToSayHello);
      } catch (const Error& failure) {
        warn("rendezvous: rank ", rank, " could not be told why: ", failure.what());
      }
    throw error;
  }

  Socket listener_;
  RankHello mine_;
  Deadline deadline_;
  std::vector<Socket> ranks_;
  std::vector<Candidate> candidates_ = {};
};

/// Exchanges of rank 0, which collects and distributes.
class FirstRankExchange {
 public:
  FirstRankExchange(std::vector<Socket> peers, std::chrono::milliseconds timeout)
      : peers_(std::move(peers)), timeout_(timeout) {}
  std::vector<std::string> operator()(std::string_view mine) {
    const Deadline deadline = steady_clock::now() + timeout_;
    std::vector<std::string> all = {std::string(mine)};
    for (size_t rank = 1; rank < peers_.size(); ++rank)
      with_rank(rank, [&] { all.push_back(receive_frame(peers_[rank], deadline)); });
    std::string joined;
    for (const std::string& part : all) joined += frame(part);
    for (size_t rank = 1; rank < peers_.size(); ++rank)
      with_rank(rank, [&] { peers_[rank].send(joined, deadline); });
    return all;
  }

 private:
  std::vector<Socket> peers_;
  std::chrono::milliseconds timeout_;
};

// ---- the other ranks

/// Exchanges of the other ranks.
class OtherRankExchange {
 public:
  OtherRankExchange(Socket first, int world, std::chrono::milliseconds timeout)
      : first_(std::move(first)), world_(world), timeout_(timeout) {}
  std::vector<std::string> operator()(std::string_view mine) {
    const Deadline deadline = steady_clock::now() + timeout_;
    std::vector<std::string> all;
    with_rank(0, [&] {
      first_.send(frame(mine), deadline);
      for (int rank = 0; rank < world_; ++rank) all.push_back(receive_frame(first_, deadline));
    });
    return all;
  }

 private:
  Socket first_;
  int world_;
  std::chrono::milliseconds timeout_;
};

struct Address {
  std::string host;
  int port;
};

/// The address of rank 0 in the store of torchrun's agent.
class FirstRankAddress {
 public:
  FirstRankAddress(const Launch& launch, Deadline deadline)
      : store_(launch.address, launch.port, deadline), key_(concat("megalith/", launch.attempt, "/rank0")) {}
  std::string local_address() const { return store_.local_address(); }
  void put(const Address& address) {
    Json json = Json::object();
    json.set("host", address.host);
    json.set("port", address.port);
    store_.set(key_, json.dump());
  }
  Address read() {
    const std::string text = store_.get(key_);
    try {
      const Json json = Json::parse(text, key_);
      const int64_t port = json["port"].as_int();
      if (port > 0 && port <= 65535) return {json["host"].as_string(), static_cast<int>(port)};
    } catch (const Error&) {  // written by another program
    }
    fail(ErrorKind::kComm, "torchrun's store, key ", quote(key_), ": ", quote(text), " is not an address");
  }

 private:
  TorchStore store_;
  std::string key_;
};

RankHello hello_of(const RendezvousOptions& options) {
  return {.version = MEGALITH_VERSION,
          .token = token_digest(options.launch.token),
          .rank = options.launch.rank,
          .world = options.launch.world,
          .options = options.options};
}

std::shared_ptr<FirstRankAddress> first_rank_address_of(const Launch& launch, Deadline deadline) {
  return launch.agent_store ? std::make_shared<FirstRankAddress>(launch, deadline) : nullptr;
}

Rendezvous receive_ranks(const RendezvousOptions& options, const std::string& interface, Deadline deadline) {
  const auto published = first_rank_address_of(options.launch, deadline);
  Socket listener = !published ? listen_on(options.launch.address, options.launch.port)
                               : listen_on(interface.empty() ? published->local_address() : interface, 0);
  const Address address{listener.local_address(), listener.local_port()};
  if (published) published->put(address);
  log("rendezvous: rank 0 waits for ", options.launch.world - 1, " more at ", address.host, ':',
      address.port);
  Admission admission(std::move(listener), hello_of(options), deadline);
  const auto collect =
      std::make_shared<FirstRankExchange>(admission.admit_all(options.timeout), options.timeout);
  return {.exchange = [collect](std::string_view mine) { return (*collect)(mine); },
          .interface_address = interface.empty() ? address.host : interface};
}

/// Connects to rank 0 and waits until all ranks have joined.
Socket reach_first_rank(const RendezvousOptions& options, const Address& address, Deadline deadline) {
  std::string answer;
  Socket socket;
  try {
    socket = connect_to(address.host, address.port, deadline);
    socket.send(encode_hello(hello_of(options)), deadline);
    answer = receive_frame(socket, deadline);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kComm) throw;
    fail(ErrorKind::kComm, "rank ", options.launch.rank, " waited for rank 0 at ", address.host, ':',
         address.port, " and the other ranks, ",
         format_duration(static_cast<double>(options.timeout.count()) / 1000), " at most: ", error.what(),
         "; look at the log of rank 0, or raise --distributed-timeout-minutes");
  }
  if (answer != kWelcome)
    fail_as(answer,
            concat("rank 0 at ", address.host, ':', address.port, " to rank ", options.launch.rank, ":"));
  return socket;
}

Rendezvous join_ranks(const RendezvousOptions& options, const std::string& interface, Deadline deadline) {
  const auto published = first_rank_address_of(options.launch, deadline);
  const Address address =
      published ? published->read() : Address{options.launch.address, options.launch.port};
  Socket socket = reach_first_rank(options, address, deadline);
  const std::string mine = interface.empty() ? socket.local_address() : interface;
  const auto send =
      std::make_shared<OtherRankExchange>(std::move(socket), options.launch.world, options.timeout);
  return {.exchange = [send](std::string_view bytes) { return (*send)(bytes); }, .interface_address = mine};
}

}  // namespace

Rendezvous join_rendezvous(const RendezvousOptions& options) {
  Deadline deadline = steady_clock::now() + options.timeout;
  if (options.launch.rank > 0) deadline += kAnswerTime;
  const std::string interface =
      options.interface_name.empty() ? "" : address_of_interface(options.interface_name);
  return options.launch.rank == 0 ? receive_ranks(options, interface, deadline)
                                  : join_ranks(options, interface, deadline);
}

}  // namespace megalith
