// libmegalith_gloo.so: see mesh.h. It uses unbound buffers only: Gloo's bound buffers shrink the send buffer
// of a connection for good, and each later message then costs a delayed acknowledgement of 40 ms.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gloo/common/error.h>
#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <sched.h>

#include "libcore/base/error.h"
#include "libcore/base/refusals.h"
#include "libcore/parallel/processes/mesh.h"

namespace megalith {
namespace {

namespace tcp = gloo::transport::tcp;

/// When a wait in Gloo times out, Gloo closes all connections before anyone can be told why. So no wait may
/// ever time out.
constexpr std::chrono::hours kForever(24 * 365);

class GlooBuffer final : public MeshBuffer {
 public:
  explicit GlooBuffer(std::unique_ptr<gloo::transport::UnboundBuffer> unbound)
      : unbound_(std::move(unbound)) {}

  void send(int peer, const Part& part) override {
    try {
      unbound_->send(peer, part.slot, part.offset, part.bytes);
    } catch (const gloo::IoException&) {
      lost_ = true;
    }
  }
  void receive(int peer, const Part& part) override {
    try {
      unbound_->recv(peer, part.slot, part.offset, part.bytes);
    } catch (const gloo::IoException&) {
      lost_ = true;
    }
  }
  Outcome wait(Direction direction) override {
    if (lost_) return Outcome::kLost;
    try {
      const bool done =
          direction == Direction::kSend ? unbound_->waitSend(kForever) : unbound_->waitRecv(kForever);
      return done ? Outcome::kDone : Outcome::kInterrupted;
    } catch (const gloo::IoException&) {
      return Outcome::kLost;
    }
  }
  void interrupt(Direction direction) override {
    if (direction == Direction::kSend)
      unbound_->abortWaitSend();
    else
      unbound_->abortWaitRecv();
  }

 private:
  std::unique_ptr<gloo::transport::UnboundBuffer> unbound_;
  std::atomic<bool> lost_{false};
};

/// Gloo's thread inherits the scheduling policy of the thread that creates it. As a batch thread it does not
/// preempt a caller. An ordinary thread may preempt a caller that holds a lock, fails to get the lock, and
/// retries only at its next tick. So a collective of 4 KiB among four ranks on two cores takes 0.2 ms instead
/// of 4 ms. If the system refuses the policy, calls are only slower.
std::shared_ptr<gloo::transport::Device> make_device(const std::string& address) {
  std::shared_ptr<gloo::transport::Device> device;
  std::exception_ptr error;
  std::thread([&] {
    const sched_param none{};
    sched_setscheduler(0, SCHED_BATCH, &none);
    try {
      tcp::attr attributes;
      attributes.hostname = address;
      device = tcp::CreateDevice(attributes);
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) std::rethrow_exception(error);
  return device;
}

void ignore_broken_pipes() {
  struct sigaction now {};
  if (sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

/// Throws the current exception, which Gloo threw, as kComm after `what`; memory or a thread that the system
/// refused, which Gloo tells in text, as kSystem.
[[noreturn]] void fail_call(const std::string& what) {
  const Error error = as_error(std::current_exception());
  if (error.kind() == ErrorKind::kSystem) throw Error(error);
  const std::string reason = error.what();
  for (const int code : {ENOMEM, EAGAIN})
    if (reason.find(std::strerror(code)) != std::string::npos)
      throw as_error(std::make_exception_ptr(std::system_error(code, std::generic_category())));
  fail(ErrorKind::kComm, what, ": ", reason);
}

class GlooMesh final : public Mesh {
 public:
  explicit GlooMesh(const MeshOptions& options) : options_(options) {
    ignore_broken_pipes();
    make_pairs();
    connect(exchange_values(options.exchange, addresses()));
    options_.exchange = nullptr;  // frees what the function holds
  }

  std::unique_ptr<MeshBuffer> buffer(void* memory, size_t bytes) override {
    return std::make_unique<GlooBuffer>(context_->createUnboundBuffer(memory, bytes));
  }

 private:
  void make_pairs() {
    try {
      context_ = make_device(options_.interface_address)->createContext(options_.rank, options_.size);
      // A fifth of the timeout: a pair waits for its connection five times as long as this.
      context_->setTimeout(std::max(options_.timeout / 5, std::chrono::milliseconds(1)));
      for (int peer = 0; peer < options_.size; ++peer)
        if (peer != options_.rank) context_->createPair(peer);
    } catch (const std::exception&) {
      fail_call(concat(options_.name_of(options_.rank), ": cannot listen on ", options_.interface_address));
    }
  }
  /// The address at which each rank reaches this one, in rank order; empty for this rank.
  using Addresses = std::vector<std::vector<char>>;
  Addresses addresses() {
    Addresses all(static_cast<size_t>(options_.size));
    for (int peer = 0; peer < options_.size; ++peer)
      if (peer != options_.rank) all[static_cast<size_t>(peer)] = context_->getPair(peer)->address().bytes();
    return all;
  }
  void connect(const std::vector<Addresses>& all) {
    if (all.size() != static_cast<size_t>(options_.size))
      fail(ErrorKind::kInternal, "addresses of ", all.size(), " ranks in a world of ", options_.size);
    for (int peer = 0; peer < options_.size; ++peer) {
      if (peer == options_.rank) continue;
      const Addresses& theirs = all[static_cast<size_t>(peer)];
      if (theirs.size() != all.size())
        fail(ErrorKind::kComm, options_.name_of(peer), " has ", theirs.size(), " addresses for ", all.size(),
             " ranks");
      try {
        context_->getPair(peer)->connect(theirs[static_cast<size_t>(options_.rank)]);
      } catch (const std::exception&) {
        fail_call(concat(options_.name_of(options_.rank), ": no connection to ", options_.name_of(peer)));
      }
    }
  }

  MeshOptions options_;
  std::shared_ptr<gloo::transport::Context> context_;
};

}  // namespace
}  // namespace megalith

extern "C" {

/// Connects all ranks and stores the result in `mesh`. Collective. Throws kComm.
__attribute__((visibility("default"))) void megalith_connect_gloo(const megalith::MeshOptions& options,
                                                                  std::unique_ptr<megalith::Mesh>& mesh) {
  mesh = std::make_unique<megalith::GlooMesh>(options);
}
}
