#include "libcore/launch/rendezvous.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/launch/admission.h"
#include "libcore/launch/rank_channel.h"
#include "libcore/launch/rank_hello.h"
#include "libcore/launch/socket.h"
#include "libcore/launch/torch_store.h"
#include "libcore/parallel/exchange.h"

namespace megalith {
namespace {

using std::chrono::steady_clock;

// How much longer than rank 0 the other ranks wait, so that rank 0 can name the ranks that did not join.
constexpr auto kAnswerTime = std::chrono::seconds(2);
constexpr auto kPatience = std::chrono::seconds(2);     // for rank 0's greeting, before another try
constexpr auto kPause = std::chrono::milliseconds(50);  // between two tries
constexpr size_t kMaxHost = 255;                        // bytes in a message
constexpr size_t kLeastMessage = size_t{1} << 16,
                 kForEachRank = 256;  // bytes: the default of max_message

/// Calls `call` and adds the rank to its errors, since the address of a connection alone tells a user little.
template <class Call>
void with_rank(size_t rank, const Call& call) {
  try {
    call();
  } catch (const Unproven&) {
    fail(ErrorKind::kComm, "rendezvous: rank ", rank,
         ": a message does not carry its proof of the job token");
  } catch (const Error& error) {
    fail(ErrorKind::kComm, "rendezvous: rank ", rank, ": ", error.what());
  }
}

/// The limits of an exchange.
struct ExchangeLimits {
  std::chrono::milliseconds timeout;
  size_t max_message;  // bytes that a rank may send
};

ExchangeLimits limits_of(const RendezvousOptions& options) {
  const auto world = static_cast<size_t>(options.launch.world);
  return {options.timeout,
          options.max_message > 0 ? options.max_message : kLeastMessage + kForEachRank * world};
}

// ---- rank 0

/// Rank 0's side of exchanges: it collects all texts and distributes the list.
class FirstRankExchange {
 public:
  FirstRankExchange(std::vector<RankChannel> peers, const ExchangeLimits& limits)
      : peers_(std::move(peers)), limits_(limits) {}
  std::vector<std::string> operator()(std::string_view mine) {
    const Deadline deadline = steady_clock::now() + limits_.timeout;
    std::vector<std::string> all = {std::string(mine)};
    for (size_t rank = 1; rank < peers_.size(); ++rank)
      with_rank(rank, [&] { all.push_back(peers_[rank].receive(limits_.max_message, deadline)); });
    const std::string joined = packed(all), digest = ProvenMessages::digest_of(joined);
    for (size_t rank = 1; rank < peers_.size(); ++rank)
      with_rank(rank, [&] { peers_[rank].send(joined, digest, deadline); });
    return all;
  }

 private:
  std::vector<RankChannel> peers_;
  ExchangeLimits limits_;
};

// ---- the other ranks

/// The other ranks' side of exchanges.
class OtherRankExchange {
 public:
  OtherRankExchange(RankChannel first, int world, const ExchangeLimits& limits)
      : first_(std::move(first)), world_(static_cast<size_t>(world)), limits_(limits) {}
  std::vector<std::string> operator()(std::string_view mine) {
    constexpr size_t kLength = sizeof(uint64_t);  // length before each text; number of texts before the list
    const Deadline deadline = steady_clock::now() + limits_.timeout;
    std::vector<std::string> all;
    with_rank(0, [&] {
      first_.send(mine, deadline);
      const size_t most = kLength + world_ * (limits_.max_message + kLength);
      const std::string joined = first_.receive(most, deadline);
      // Checked before memory is allocated for as many texts as the message says.
      const auto count = unpacked<uint64_t>(std::string_view(joined).substr(0, kLength));
      if (count != world_) fail(ErrorKind::kComm, "it sent what ", count, " ranks said, wanted ", world_);
      all = unpacked<std::vector<std::string>>(joined);
    });
    return all;
  }

 private:
  RankChannel first_;
  size_t world_;
  ExchangeLimits limits_;
};

/// The address of rank 0 in the store of torchrun's agent.
class FirstRankAddress {
 public:
  FirstRankAddress(const Launch& launch, Deadline deadline)
      : store_(launch.address, launch.port, deadline), key_(concat("megalith/", launch.attempt, "/rank0")) {}
  std::string local_address() const { return store_.local_address(); }
  void put(const RankAddress& address) { store_.set(key_, encode_address(address)); }
  RankAddress read() {
    const std::string text = store_.get(key_);
    try {
      return decode_address(text, key_);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kSystem) throw;
    }
    // The text is not an address: another program wrote it.
    fail(ErrorKind::kComm, "torchrun's store, key ", quote(key_), ": ", quote_name(text),
         " is not an address");
  }

 private:
  TorchStore store_;
  std::string key_;
};

RankHello hello_of(const RendezvousOptions& options) {
  return {.version = MEGALITH_VERSION,
          .job = options.launch.job,
          .rank = options.launch.rank,
          .world = options.launch.world,
          .options = options.options};
}

std::shared_ptr<FirstRankAddress> first_rank_address_of(const Launch& launch, Deadline deadline) {
  return launch.agent_store ? std::make_shared<FirstRankAddress>(launch, deadline) : nullptr;
}

Rendezvous receive_ranks(const RendezvousOptions& options, const std::string& interface, Deadline deadline) {
  const auto published = first_rank_address_of(options.launch, deadline);
  Socket listener = !published ? listen_on(options.launch.address, options.launch.port, deadline)
                               : listen_on(interface.empty() ? published->local_address() : interface, 0);
  const RankAddress address{listener.local_address(), listener.local_port()};
  if (published) published->put(address);
  log("rendezvous: rank 0 waits for ", options.launch.world - 1, " more at ",
      printable(address.host, kMaxHost), ':', address.port);
  const auto collect =
      std::make_shared<FirstRankExchange>(admit_ranks(std::move(listener), {.mine = hello_of(options),
                                                                            .token = options.launch.token,
                                                                            .timeout = options.timeout,
                                                                            .deadline = deadline}),
                                          limits_of(options));
  return {.exchange = [collect](std::string_view mine) { return (*collect)(mine); },
          .interface_address = interface.empty() ? address.host : interface};
}

/// Rank 0's answer to this rank's hello, on its connection.
struct Answered {
  RankChannel channel;
  std::string answer;
};

/// One attempt to join. Nothing if rank 0 closed the connection without an answer, as it does when it has no
/// room.
std::optional<Answered> say_hello(const RendezvousOptions& options, const RankAddress& address,
                                  Deadline deadline) {
  auto channel = greet_first_rank(connect_to(address.host, address.port, deadline), options.launch.token,
                                  std::min(deadline, steady_clock::now() + kPatience));
  if (!channel) return std::nullopt;
  try {
    channel->send(encode_hello(hello_of(options)), deadline);
    std::string answer = channel->receive(kMaxAnswer, deadline);
    return Answered{std::move(*channel), std::move(answer)};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kComm) throw;
    return std::nullopt;
  }
}

/// Repeats say_hello() until rank 0 answers. If rank 0 admitted this rank, then waits for all ranks.
Answered await_answer(const RendezvousOptions& options, const RankAddress& address, Deadline deadline) {
  for (;;) {
    auto said = say_hello(options, address, deadline);
    if (said && said->answer == kWelcome) said->answer = said->channel.receive(kMaxAnswer, deadline);
    if (said) return std::move(*said);
    if (steady_clock::now() + kPause >= deadline)
      fail(ErrorKind::kComm, "it answered none of the connections");
    stop_if_asked();
    std::this_thread::sleep_for(kPause);
  }
}

/// Connects to rank 0 and waits until all ranks have joined.
RankChannel reach_first_rank(const RendezvousOptions& options, const RankAddress& address,
                             Deadline deadline) {
  const std::string at = concat("rank 0 at ", printable(address.host, kMaxHost), ':', address.port);
  const std::string where = concat(at, " to rank ", options.launch.rank, ":");
  Answered said;
  try {
    said = await_answer(options, address, deadline);
  } catch (const Unproven&) {
    fail(ErrorKind::kUsage, where, " it has another job token; give all ranks the same MEGALITH_JOB_TOKEN");
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kUsage) throw;
    fail(ErrorKind::kComm, "rank ", options.launch.rank, " waited for ", at, " and the other ranks, ",
         format_duration(static_cast<double>(options.timeout.count()) / 1000), " at most: ", error.what(),
         "; look at the log of rank 0, or raise --distributed-timeout-minutes");
  }
  if (said.answer != kWelcome) fail_as(said.answer, where);
  return std::move(said.channel);
}

Rendezvous join_ranks(const RendezvousOptions& options, const std::string& interface, Deadline deadline) {
  const auto published = first_rank_address_of(options.launch, deadline);
  const RankAddress address =
      published ? published->read() : RankAddress{options.launch.address, options.launch.port};
  RankChannel channel = reach_first_rank(options, address, deadline);
  const std::string mine = interface.empty() ? channel.socket().local_address() : interface;
  const auto send =
      std::make_shared<OtherRankExchange>(std::move(channel), options.launch.world, limits_of(options));
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
