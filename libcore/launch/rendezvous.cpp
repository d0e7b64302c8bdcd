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

constexpr auto kGuestTime = std::chrono::seconds(10);  // to say who it is
// the others wait longer, so that rank 0 can say who did not come
constexpr auto kAnswerTime = std::chrono::seconds(2);
constexpr size_t kMaxStrangers = 256;  // at a time
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

/// Rank 0's answer to a hello: nothing, or an error's exit code and message.
constexpr const char* kWelcome = "";

std::string answer_of(const Error& error) {
  return frame(concat(exit_code(error.kind()), ' ', error.what()));
}

[[noreturn]] void fail_as(std::string_view answer, const std::string& where) {
  const size_t blank = std::min(answer.find(' '), answer.size());
  const bool gone = parse_int(answer.substr(0, blank)) == exit_code(ErrorKind::kComm);
  fail(gone ? ErrorKind::kComm : ErrorKind::kUsage, where, answer.substr(blank));
}

// ---- rank 0

/// Names the rank in what goes wrong with its connection, because an address alone tells a user little.
template <class Call>
void with_rank(size_t rank, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    fail(ErrorKind::kComm, "rendezvous: rank ", rank, ": ", error.what());
  }
}

struct Guest {
  Socket socket;
  std::string bytes = {};
  Deadline deadline;  // to say who it is
};

/// Rank 0's side until all are there.
class Door {
 public:
  Door(Socket listener, RankHello mine, Deadline deadline)
      : listener_(std::move(listener)),
        mine_(std::move(mine)),
        deadline_(deadline),
        seats_(static_cast<size_t>(mine_.world)) {}

  /// Connections in rank order; the first place is empty.
  std::vector<Socket> wait_for_all(std::chrono::milliseconds timeout) {
    while (!missing().empty()) {
      if (steady_clock::now() >= deadline_) {
        end_all({ErrorKind::kComm,
                 concat(missing().size() == 1 ? "rank " : "ranks ", join(missing(), ", "),
                        " did not connect to ", listener_.local_address(), ':', listener_.local_port(),
                        " within ", format_duration(static_cast<double>(timeout.count()) / 1000),
                        "; look at the log of each, or raise --distributed-timeout-minutes")});
      }
      serve();
      stop_if_asked();
    }
    for (size_t rank = 1; rank < seats_.size(); ++rank)
      with_rank(rank, [&] { seats_[rank].send(frame(kWelcome), deadline_); });
    return std::move(seats_);
  }

 private:
  std::vector<std::string> missing() const {
    std::vector<std::string> ranks;
    for (size_t rank = 1; rank < seats_.size(); ++rank)
      if (!seats_[rank].open()) ranks.push_back(std::to_string(rank));
    return ranks;
  }

  void serve() {
    std::vector<pollfd> wanted = {{.fd = listener_.descriptor(), .events = POLLIN, .revents = 0}};
    for (const Guest& guest : guests_)
      wanted.push_back({.fd = guest.socket.descriptor(), .events = POLLIN, .revents = 0});
    for (const Socket& seat : seats_)
      wanted.push_back({.fd = seat.descriptor(), .events = POLLIN, .revents = 0});
    ::poll(wanted.data(), wanted.size(), 100);
    for (size_t rank = 1; rank < seats_.size(); ++rank)
      if (seats_[rank].open() && wanted[1 + guests_.size() + rank].revents != 0) leave(rank);
    std::vector<Guest> staying;
    for (Guest& guest : guests_)
      if (!listen_to(guest)) staying.push_back(std::move(guest));
    guests_ = std::move(staying);
    if (wanted[0].revents != 0) let_in();
  }

  void let_in() {
    Socket socket = listener_.accept();
    if (socket.open() && guests_.size() < kMaxStrangers + seats_.size())
      guests_.push_back({.socket = std::move(socket), .deadline = steady_clock::now() + kGuestTime});
  }

  /// A rank that waits says nothing: it has gone.
  void leave(size_t rank) {
    warn("rendezvous: rank ", rank, " disconnected before all ranks had joined");
    seats_[rank] = {};
  }

  /// Whether the guest is done with: seated or sent away.
  bool listen_to(Guest& guest) {
    const std::string from = guest.socket.peer_address();
    try {
      const auto some = guest.socket.receive_some(size_t{1} << 16);
      if (!some) fail(ErrorKind::kData, "it disconnected without sending anything");
      guest.bytes += *some;
      if (const auto hello = decode_hello(guest.bytes)) {
        seat(guest, *hello);
        return true;
      }
      if (steady_clock::now() >= guest.deadline) fail(ErrorKind::kData, "it sent no hello in time");
      return false;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kUsage) throw;  // the end of all
      warn("rendezvous: refused ", from, ": ", error.what());
      return true;
    }
  }

  void seat(Guest& guest, const RankHello& hello) {
    std::string why = refusal(mine_, hello);
    const auto rank = static_cast<size_t>(hello.rank);
    if (why.empty() && (rank == 0 || seats_[rank].open()))
      why = concat("there is already a rank ", rank, ", from ",
                   rank == 0 ? listener_.local_address() : seats_[rank].peer_address());
    if (!why.empty()) {
      warn("rendezvous: refused rank ", hello.rank, " of ", guest.socket.peer_address(), ": ", why);
      guest.socket.send(answer_of({ErrorKind::kUsage, why}), guest.deadline);
      return;
    }
    seats_[rank] = std::move(guest.socket);
    if (const std::string list = option_differences(mine_, hello); !list.empty())
      end_all({ErrorKind::kUsage, "the ranks were not given the same options: " + list});
  }

  /// Throws it here, and on all that are there.
  [[noreturn]] void end_all(const Error& error) {
    for (size_t rank = 1; rank < seats_.size(); ++rank) try {
        if (seats_[rank].open()) seats_[rank].send(answer_of(error), steady_clock::now() + kGuestTime);
      } catch (const Error& failure) {
        warn("rendezvous: rank ", rank, " could not be told why: ", failure.what());
      }
    throw error;
  }

  Socket listener_;
  RankHello mine_;
  Deadline deadline_;
  std::vector<Socket> seats_;
  std::vector<Guest> guests_ = {};
};

/// Rank 0's exchanges: it collects and hands out.
class Collector {
 public:
  Collector(std::vector<Socket> peers, std::chrono::milliseconds timeout)
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

/// Their exchanges.
class Sender {
 public:
  Sender(Socket first, int world, std::chrono::milliseconds timeout)
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

/// Where torchrun's store says that rank 0 listens.
class Noticeboard {
 public:
  Noticeboard(const Launch& launch, Deadline deadline)
      : store_(launch.address, launch.port, deadline), key_(concat("megalith/", launch.attempt, "/rank0")) {}
  std::string local_address() const { return store_.local_address(); }
  void put(const Address& address) { store_.set(key_, concat(address.host, ' ', address.port)); }
  Address read() {
    const std::string text = store_.get(key_);
    const auto parts = split(text, ' ');
    const auto port = parts.size() == 2 ? parse_int(parts[1]) : std::nullopt;
    if (!port || *port < 1 || *port > 65535)
      fail(ErrorKind::kComm, "torchrun's store, key ", quote(key_), ": ", quote(text), " is not an address");
    return {parts[0], static_cast<int>(*port)};
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

std::shared_ptr<Noticeboard> noticeboard_of(const Launch& launch, Deadline deadline) {
  return launch.agent_store ? std::make_shared<Noticeboard>(launch, deadline) : nullptr;
}

Meeting receive_ranks(const RendezvousOptions& options, const std::string& interface, Deadline deadline) {
  const auto board = noticeboard_of(options.launch, deadline);
  Socket listener = !board ? listen_on(options.launch.address, options.launch.port)
                           : listen_on(interface.empty() ? board->local_address() : interface, 0);
  const Address address{listener.local_address(), listener.local_port()};
  if (board) board->put(address);
  log("rendezvous: rank 0 waits for ", options.launch.world - 1, " more at ", address.host, ':',
      address.port);
  Door door(std::move(listener), hello_of(options), deadline);
  const auto collect = std::make_shared<Collector>(door.wait_for_all(options.timeout), options.timeout);
  return {.exchange = [collect](std::string_view mine) { return (*collect)(mine); },
          .interface_address = interface.empty() ? address.host : interface};
}

/// Connected and welcomed.
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

Meeting join_ranks(const RendezvousOptions& options, const std::string& interface, Deadline deadline) {
  const auto board = noticeboard_of(options.launch, deadline);
  const Address address = board ? board->read() : Address{options.launch.address, options.launch.port};
  Socket socket = reach_first_rank(options, address, deadline);
  const std::string mine = interface.empty() ? socket.local_address() : interface;
  const auto send = std::make_shared<Sender>(std::move(socket), options.launch.world, options.timeout);
  return {.exchange = [send](std::string_view bytes) { return (*send)(bytes); }, .interface_address = mine};
}

}  // namespace

Meeting meet(const RendezvousOptions& options) {
  Deadline deadline = steady_clock::now() + options.timeout;
  if (options.launch.rank > 0) deadline += kAnswerTime;
  const std::string interface =
      options.interface_name.empty() ? "" : address_of_interface(options.interface_name);
  return options.launch.rank == 0 ? receive_ranks(options, interface, deadline)
                                  : join_ranks(options, interface, deadline);
}

}  // namespace megalith
