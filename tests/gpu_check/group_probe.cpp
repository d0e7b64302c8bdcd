#include "tests/gpu_check/group_probe.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/figures/quantile.h"
#include "libcore/base/process.h"
#include "libcore/ops/backend/cuda_plugin.h"
#include "libcore/ops/backend/nccl_plugin.h"
#include "libcore/parallel/devices/device_comm.h"
#include "libcore/parallel/threads/thread_comm.h"

namespace megalith {
namespace {

using Print = std::function<void(const Json&)>;

/// Waits as long as it takes; the script has a deadline.
class Patience final : public DeviceWatch {
 public:
  void await(const std::function<bool()>& done) override {
    while (!done()) std::this_thread::yield();
  }
  void give_up() noexcept override {}
};

/// A tensor of fp32 on a device.
struct Floats {
  Floats(Backend& backend, int64_t elements)
      : memory(backend.allocate(static_cast<size_t>(elements) * sizeof(float))),
        view{memory.data.get(), DType::kF32, {elements}} {}
  Memory memory;
  View view;
};

void require_all(Stream& stream, const View& view, float wanted, const char* call) {
  std::vector<float> values(static_cast<size_t>(view.elements()));
  stream.to_host(values.data(), view);
  for (const float value : values)
    if (value != wanted) fail(ErrorKind::kInternal, call, ": ", value, " in place of ", wanted);
}

// ---- one rank

/// NCCL's communicator of one rank, which no run has: a group of one needs none.
class OneRank {
 public:
  OneRank() : backend_(make_cuda_backend(0)), stream_(backend_->make_stream()) {
    set_device_watch(*backend_, &patience_);
    group_ = start_nccl_group({.backend = *backend_,
                               .watch = patience_,
                               .name = "alone",
                               .id = new_nccl_id(),
                               .rank = 0,
                               .size = 1});
    group_->await_start();
  }
  ~OneRank() { set_device_watch(*backend_, nullptr); }
  OneRank(const OneRank&) = delete;
  OneRank& operator=(const OneRank&) = delete;

  void print_all(int64_t elements, const Print& print) {
    const Floats from(*backend_, elements), to(*backend_, elements);
    const auto whole = [&](DeviceCall::Kind kind) {
      return std::vector<DeviceCall>{{.kind = kind, .in = from.view, .out = to.view, .peer = 0}};
    };
    print_call("all_reduce", whole(DeviceCall::kSum), from.view, to.view, print);
    print_call("reduce_scatter", whole(DeviceCall::kScatterSum), from.view, to.view, print);
    print_call("all_gather", whole(DeviceCall::kGather), from.view, to.view, print);
    print_call("broadcast", whole(DeviceCall::kBroadcast), from.view, to.view, print);
    print_call("send_recv",
               {{.kind = DeviceCall::kSend, .in = from.view, .peer = 0},
                {.kind = DeviceCall::kReceive, .out = to.view, .peer = 0}},
               from.view, to.view, print);
    if (group_->split({.name = "part", .color = 0, .key = 0, .rank = 0, .size = 1}))
      fail(ErrorKind::kInternal, "split: a group of one has a communicator");
    group_->begin_finish();
    group_->finish();
  }

 private:
  /// With one rank, each call copies.
  void print_call(const char* name, const std::vector<DeviceCall>& calls, const View& from, const View& to,
                  const Print& print) {
    stream_.fill(from, 3);
    stream_.fill(to, 0);
    stream_.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    group_->launch(stream_, calls);
    stream_.synchronize();
    const double seconds = seconds_since(begin);
    require_all(stream_, to, 3, name);
    print(Json(Json::Object{{"what", concat("1-", name)}, {"ms", 1e3 * seconds}}));
  }

  Patience patience_;
  std::unique_ptr<Backend> backend_;
  Stream stream_;
  std::unique_ptr<DeviceGroup> group_;
};

// ---- several ranks

struct Timing {
  int calls, rounds;
};

/// One of the ranks, a thread with a device of its own.
class ProbedRank {
 public:
  ProbedRank(Communicator& threads, const Timing& timing, const Print& print)
      : threads_(threads),
        timing_(timing),
        print_(print),
        backend_(make_cuda_backend(threads.rank())),
        stream_(backend_->make_stream()),
        world_(make_device_comm(threads, *backend_, {})),
        forward_(world_->split({"pipeline forward", GroupRole::kPipelineForward}, 0, threads.rank())) {}

  void print_size(const std::string& size, int64_t elements) {
    const Floats tensor(*backend_, elements), part(*backend_, elements / ranks());
    print_rate("all_reduce-" + size, 2.0 * (ranks() - 1) / ranks(), tensor,
               [&] { world_->all_reduce(stream_, tensor.view, Reduce::kSum); });
    require_all(stream_, tensor.view.rows(0, 1), 0, "all_reduce of zeros");
    print_rate("reduce_scatter-" + size, (ranks() - 1.0) / ranks(), tensor,
               [&] { world_->reduce_scatter(stream_, part.view, tensor.view, Reduce::kSum); });
    print_messages(size, tensor);
    require_sums(tensor, part);
  }

 private:
  int ranks() const { return world_->size(); }
  int place(int step) const { return (threads_.rank() + step + ranks()) % ranks(); }

  /// Each rank sends to the next one, around a ring.
  void print_messages(const std::string& size, const Floats& tensor) {
    const Floats got(*backend_, tensor.view.elements());
    const Floats& slots =
        *slots_.emplace_back(std::make_unique<Floats>(*backend_, 2 * tensor.view.elements()));
    const auto bytes = static_cast<int64_t>(slots.memory.bytes);
    forward_->set_send_slots({slots.memory.data.get(), DType::kU8, {bytes}}, 2);
    stream_.fill(tensor.view, threads_.rank());
    print_rate("send_recv-" + size, 1, tensor, [&] {
      forward_->send(stream_, tensor.view, place(1));
      forward_->recv(stream_, got.view, place(-1));
    });
    require_all(stream_, got.view, static_cast<float>(place(-1)), "send_recv");
  }

  /// Rank r has r + 1 everywhere.
  void require_sums(const Floats& tensor, const Floats& part) {
    const float wanted = static_cast<float>(ranks()) * static_cast<float>(ranks() + 1) / 2;
    stream_.fill(tensor.view, threads_.rank() + 1);
    world_->reduce_scatter(stream_, part.view, tensor.view, Reduce::kSum);
    require_all(stream_, part.view, wanted, "reduce_scatter");
    world_->all_reduce(stream_, tensor.view, Reduce::kSum);
    require_all(stream_, tensor.view, wanted, "all_reduce");
  }

  /// The median of several rounds of the slowest rank. `share`: of the tensor's bytes, what each link
  /// carries.
  void print_rate(const std::string& name, double share, const Floats& tensor,
                  const std::function<void()>& call) {
    std::vector<double> seconds;
    for (int round = 0; round <= timing_.rounds; ++round) {
      stream_.synchronize();
      threads_.exchange({});
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < timing_.calls; ++i) call();
      stream_.synchronize();
      threads_.exchange({});
      if (round > 0) seconds.push_back(seconds_since(begin) / timing_.calls);  // the first one warms up
    }
    const double median = quantile(seconds, 0.5);
    if (threads_.rank() == 0)
      print_(Json(Json::Object{{"what", concat(ranks(), '-', name)},
                               {"gb_per_s", share * static_cast<double>(tensor.memory.bytes) / 1e9 / median},
                               {"ms", 1e3 * median}}));
  }

  Communicator& threads_;
  const Timing timing_;
  const Print& print_;
  std::unique_ptr<Backend> backend_;
  Stream stream_;
  std::vector<std::unique_ptr<Floats>> slots_;  // which must outlive the communicator
  std::unique_ptr<Communicator> world_, forward_;
};

}  // namespace

void probe_nccl(int ranks, bool quick, const Print& print) {
  if (const int devices = cuda_devices(); devices < ranks)
    fail(ErrorKind::kDevice, "NCCL: ", ranks, " ranks need as many devices, and there ",
         devices == 1 ? "is 1" : concat("are ", devices));
  constexpr int64_t kQuarterMebi = int64_t{1} << 18;  // elements of a MiB
  if (ranks == 1) return OneRank().print_all(quick ? 1024 : 64 * kQuarterMebi, print);
  const Timing timing = quick ? Timing{1, 2} : Timing{10, 5};
  run_thread_ranks(ranks, {}, [&](Communicator& threads) {
    ProbedRank rank(threads, timing, print);
    // A multiple of the ranks, so that all parts are equal.
    const auto elements = [&](int64_t wanted) { return wanted / ranks * ranks; };
    if (quick) return rank.print_size("4KiB", elements(1024));
    for (const int64_t mebibytes : {8, 64, 512})
      rank.print_size(concat(mebibytes, "MiB"), elements(mebibytes * kQuarterMebi));
  });
}

}  // namespace megalith
