#include "libcore/parallel/devices/device_comm.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/ops/backend/nccl_plugin.h"
#include "libcore/parallel/devices/device_world.h"
#include "libcore/parallel/exchange.h"

namespace megalith {
namespace {

bool is_pipeline(GroupRole role) {
  return role == GroupRole::kPipelineForward || role == GroupRole::kPipelineBackward;
}

std::vector<int> ranks_of(const RunWatch& group, int size) {
  std::vector<int> ranks;
  for (int place = 0; place < size; ++place) ranks.push_back(group.rank_at(place));
  return ranks;
}

/// What all communicators of a rank have in common: places and names are those of the host's group.
class DeviceCommBase : public Communicator {
 public:
  DeviceCommBase(std::shared_ptr<DeviceWorld> world, Communicator& host)
      : world_(std::move(world)), host_(host), run_(run_watch_of(host)) {}
  int rank() const override { return host_.rank(); }
  int size() const override { return host_.size(); }
  const std::string& name() const override { return host_.name(); }
  std::vector<std::string> exchange(std::string_view mine) override { return host_.exchange(mine); }
  void abort(const std::string& why) override { host_.abort(why); }

 protected:
  /// Names a call.
  std::string place(const char* call) const { return concat(step(call), ", call ", calls_); }
  /// Names what the group does beside its calls.
  std::string step(const char* what) const {
    return concat(name(), ": ", run_.name_of(run_.rank_at(rank())), ": ", what);
  }
  void begin(const char* call, const std::string& problem) {
    ++calls_;
    world_->check_alive([=, this] { return place(call); });
    if (!problem.empty()) fail(ErrorKind::kInternal, place(call), ": ", problem);
  }
  /// Enqueues the calls of devices that make up this call.
  void launch(DeviceCalls& devices, Stream& stream, std::span<const DeviceCall> calls,
              const GroupCall& call) {
    world_->attempt([this, name = call.name] { return place(name); },
                    [&] {
                      devices.launch(stream, calls, {name(), calls_, call});
                    });
  }
  /// Does `work`, in which groups of NCCL start, split or end.
  void attempt(const char* what, const std::function<void()>& work) {
    world_->attempt([=, this] { return step(what); }, work);
  }
  /// Ends groups, for a destructor. An error has stopped the run, whose other ranks throw it.
  void finish(std::span<DeviceCalls* const> devices) noexcept {
    try {
      attempt("end", [&] {
        for (DeviceCalls* const one : devices) one->group().begin_finish();
        for (DeviceCalls* const one : devices) one->group().finish();
      });
    } catch (const std::exception& error) {
      tell("error: ", error.what());
    }
  }
  bool fails() const { return std::uncaught_exceptions() > exceptions_; }

  const std::shared_ptr<DeviceWorld> world_;
  Communicator& host_;
  RunWatch& run_;
  uint64_t calls_ = 0;

 private:
  int exceptions_ = std::uncaught_exceptions();
};

/// A group whose devices call together. Groups of the same ranks may share the devices' side: see
/// may_share().
class DeviceComm final : public DeviceCommBase {
 public:
  DeviceComm(const std::shared_ptr<DeviceWorld>& world, Communicator& host,
             std::shared_ptr<DeviceCalls> devices)
      : DeviceCommBase(world, host), devices_(std::move(devices)) {}
  DeviceComm(const std::shared_ptr<DeviceWorld>& world, std::unique_ptr<Communicator> host,
             std::shared_ptr<DeviceCalls> devices)
      : DeviceComm(world, *host, std::move(devices)) {
    own_host_ = std::move(host);
  }
  /// A rank that fails destroys its communicators while the stack unwinds. Of those that share a group of
  /// NCCL the last ends it.
  ~DeviceComm() override {
    DeviceCalls* const own = devices_.get();
    if (fails())
      world_->give_up();
    else if (devices_.use_count() == 1)
      finish({&own, 1});
  }
  DeviceComm(const DeviceComm&) = delete;
  DeviceComm& operator=(const DeviceComm&) = delete;

  void all_reduce(Stream& stream, View view, Reduce reduce) override {
    const auto kind = reduce == Reduce::kSum ? DeviceCall::kSum : DeviceCall::kMax;
    call(stream, all_reduce_call(view, reduce), {.kind = kind, .in = view, .out = view});
  }
  void all_gather(Stream& stream, View out, ConstView mine) override {
    call(stream, all_gather_call(out, mine), {.kind = DeviceCall::kGather, .in = mine, .out = out});
  }
  void reduce_scatter(Stream& stream, View mine, ConstView in, Reduce reduce) override {
    const auto kind = reduce == Reduce::kSum ? DeviceCall::kScatterSum : DeviceCall::kScatterMax;
    call(stream, reduce_scatter_call(mine, in, reduce), {.kind = kind, .in = in, .out = mine});
  }
  void broadcast(Stream& stream, View view, int root) override {
    call(stream, broadcast_call(view, root),
         {.kind = DeviceCall::kBroadcast, .in = view, .out = view, .peer = root});
  }
  void gather_parts(Stream& stream, View whole, const Places& places) override {
    call_parts(stream, gather_parts_call(whole, places), DeviceCall::kBroadcast);
  }
  void reduce_parts(Stream& stream, View whole, Reduce reduce, const Places& places) override {
    call_parts(stream, reduce_parts_call(whole, reduce, places),
               reduce == Reduce::kSum ? DeviceCall::kRootSum : DeviceCall::kRootMax);
  }
  void all_to_all(Stream& stream, View out, ConstView in) override;
  void set_send_slots(View, int) override { refuse_messages("set_send_slots"); }
  void send(Stream&, ConstView, int) override { refuse_messages("send"); }
  void recv(Stream&, View, int) override { refuse_messages("recv"); }
  std::unique_ptr<Communicator> split(const GroupName& name, int color, int key) override;

 private:
  void call(Stream& stream, const GroupCall& call, const DeviceCall& of_device) {
    begin(call.name, problem_of(call, size(), rank()));
    if (call.in.elements() > 0) launch(*devices_, stream, {&of_device, 1}, call);
  }
  void call_parts(Stream&, const GroupCall&, DeviceCall::Kind);
  [[noreturn]] void refuse_messages(const char* call) const {
    fail(ErrorKind::kInternal, place(call), ": only the groups of a pipeline send messages between devices");
  }

  std::unique_ptr<Communicator> own_host_;
  std::shared_ptr<DeviceCalls> devices_;  // shared with communicators of the same ranks
};

/// A call for each part, whose place is the root; they run together.
void DeviceComm::call_parts(Stream& stream, const GroupCall& call, DeviceCall::Kind kind) {
  begin(call.name, problem_of(call, size(), rank()));
  const View whole = call.out.as_shape({call.out.elements()});
  const int64_t part = whole.elements() / size();
  if (part == 0) return;
  std::vector<DeviceCall> calls;
  for (int place = call.places.first; place < call.places.last; ++place) {
    const View of_place = whole.rows(place * part, (place + 1) * part);
    calls.push_back({.kind = kind, .in = of_place, .out = of_place, .peer = place});
  }
  launch(*devices_, stream, calls, call);
}

void DeviceComm::all_to_all(Stream& stream, View out, ConstView in) {
  const GroupCall call = all_to_all_call(out, in);
  begin(call.name, problem_of(call, size(), rank()));
  if (in.elements() == 0) return;
  const int64_t part = in.elements() / size();
  const View whole_out = out.as_shape({out.elements()});
  const ConstView whole_in = in.as_shape({in.elements()});
  std::vector<DeviceCall> calls;
  for (int peer = 0; peer < size(); ++peer) {
    const ConstView from = whole_in.rows(peer * part, (peer + 1) * part);
    const View to = whole_out.rows(peer * part, (peer + 1) * part);
    if (peer == rank()) {
      stream.copy(to, from);
      continue;
    }
    calls.push_back({.kind = DeviceCall::kSend, .in = from, .peer = peer});
    calls.push_back({.kind = DeviceCall::kReceive, .out = to, .peer = peer});
  }
  launch(*devices_, stream, calls, call);
}

// ---- pipelines

/// One direction between two neighbours of a pipeline: a group of two, whose place 0 sends, and its stream.
struct Link {
  Link(DeviceWorld& world, const DeviceCalls::Members& members, std::unique_ptr<DeviceGroup> group)
      : stream(world.backend().make_stream()), devices(world.groups(), members, std::move(group)) {}
  Stream stream;
  DeviceCalls devices;
};

/// The ranks of a pipeline. Messages leave from slots, on the link's stream, so that the compute stream does
/// not wait for the receiver.
class PipelineComm final : public DeviceCommBase {
 public:
  /// `step`: 1 if messages go to the next place, -1 if to the previous one. Collective.
  PipelineComm(const std::shared_ptr<DeviceWorld>& world, std::unique_ptr<Communicator> host, int step);
  ~PipelineComm() override;
  PipelineComm(const PipelineComm&) = delete;
  PipelineComm& operator=(const PipelineComm&) = delete;

  void all_reduce(Stream&, View, Reduce) override { refuse("all_reduce"); }
  void all_gather(Stream&, View, ConstView) override { refuse("all_gather"); }
  void reduce_scatter(Stream&, View, ConstView, Reduce) override { refuse("reduce_scatter"); }
  void all_to_all(Stream&, View, ConstView) override { refuse("all_to_all"); }
  void broadcast(Stream&, View, int) override { refuse("broadcast"); }
  void gather_parts(Stream&, View, const Places&) override { refuse("gather_parts"); }
  void reduce_parts(Stream&, View, Reduce, const Places&) override { refuse("reduce_parts"); }
  void set_send_slots(View memory, int slots) override;
  void send(Stream&, ConstView, int peer) override;
  void recv(Stream&, View, int peer) override;
  std::unique_ptr<Communicator> split(const GroupName&, int, int) override { refuse("split"); }

 private:
  [[noreturn]] void refuse(const char* call) const {
    fail(ErrorKind::kInternal, place(call), ": the group of a pipeline only sends messages between devices");
  }
  int neighbour(int step) const { return (rank() + step + size()) % size(); }
  static std::string problem_of_peer(int peer, int wanted, const Link* link) {
    if (peer != wanted) return concat("wanted the neighbour, place ", wanted, ", got place ", peer);
    return link == nullptr ? concat("the pipeline is no ring, and has no link to place ", peer)
                           : std::string();
  }
  std::unique_ptr<Link> link(const std::string& id, int from, int to) const;
  std::vector<Link*> links() const;

  std::unique_ptr<Communicator> own_host_;
  const bool is_forward_;
  int next_, previous_;
  std::unique_ptr<Link> out_, in_;
  View slots_;
  std::vector<Event> free_;  // for each slot, when the message in it has been received
  size_t next_slot_ = 0;
};

PipelineComm::PipelineComm(const std::shared_ptr<DeviceWorld>& world, std::unique_ptr<Communicator> host,
                           int step)
    : DeviceCommBase(world, *host),
      own_host_(std::move(host)),
      is_forward_(step > 0),
      next_(neighbour(step)),
      previous_(neighbour(-step)) {
  std::string id;
  attempt("start", [&] { id = new_nccl_id(); });
  const std::vector<std::string> ids = host_.exchange(id);
  attempt("start", [&] {
    out_ = link(ids[static_cast<size_t>(rank())], rank(), next_);
    in_ = link(ids[static_cast<size_t>(previous_)], previous_, rank());
    for (Link* const one : links()) one->devices.group().await_start();
  });
}

/// Those that there are, of the two.
std::vector<Link*> PipelineComm::links() const {
  std::vector<Link*> all;
  for (Link* const one : {out_.get(), in_.get()})
    if (one != nullptr) all.push_back(one);
  return all;
}

/// Null if the pipeline is no ring, and the link would make it one.
std::unique_ptr<Link> PipelineComm::link(const std::string& id, int from, int to) const {
  const bool closes_ring = std::abs(from - to) == size() - 1 && (from < to) != is_forward_;
  if (closes_ring && !world_->options().rings) return nullptr;
  return std::make_unique<Link>(*world_, DeviceCalls::Members{name(), {run_.rank_at(from), run_.rank_at(to)}},
                                start_nccl_group({.backend = world_->backend(),
                                                  .watch = *world_,
                                                  .name = name(),
                                                  .id = id,
                                                  .rank = from == rank() ? 0 : 1,
                                                  .size = 2}));
}

/// Waits until all messages have been received.
PipelineComm::~PipelineComm() {
  if (fails()) world_->give_up();
  std::vector<DeviceCalls*> devices;
  for (Link* const one : links()) {
    one->stream.finish(fails());
    devices.push_back(&one->devices);
  }
  if (!fails()) finish(devices);
}

void PipelineComm::set_send_slots(View memory, int slots) {
  if (slots < 1) fail(ErrorKind::kInternal, name(), ": ", slots, " slots for messages");
  if (out_) out_->stream.synchronize();  // until the messages in the former slots have been received
  slots_ = memory;
  free_.assign(static_cast<size_t>(slots), Event{});
  next_slot_ = 0;
}

void PipelineComm::send(Stream& stream, ConstView view, int peer) {
  const size_t slots = free_.size(), bytes = slots == 0 ? 0 : slots_.bytes() / slots;
  std::string problem = problem_of_peer(peer, next_, out_.get());
  if (problem.empty()) problem = slot_problem(view.bytes(), slots, bytes);
  begin("send", problem);
  if (view.bytes() == 0) return;
  const size_t slot = next_slot_++ % slots;
  const View message{slots_.as<std::byte>() + slot * bytes, view.dtype, view.shape};
  stream.wait(free_[slot]);
  stream.copy(message, view);
  out_->stream.wait(stream.record());
  const DeviceCall call{.kind = DeviceCall::kSend, .in = message, .peer = 1};
  launch(out_->devices, out_->stream, {&call, 1}, {.name = "send", .in = message});
  free_[slot] = out_->stream.record();
}

void PipelineComm::recv(Stream& stream, View view, int peer) {
  begin("recv", problem_of_peer(peer, previous_, in_.get()));
  if (view.bytes() == 0) return;
  in_->stream.wait(stream.record());  // nothing uses `view` any more
  const DeviceCall call{.kind = DeviceCall::kReceive, .out = view, .peer = 0};
  launch(in_->devices, in_->stream, {&call, 1}, {.name = "recv", .in = view});
  stream.wait(in_->stream.record());
}

// ---- start

/// Whether a group of this role, if it has the ranks of its parent in the same order, may share the parent's
/// group of NCCL, whose calls run one after another. It may if no other stream calls the parent at the same
/// time. Data-parallel sums run beside the calls of context groups, so these have their own.
bool may_share(GroupRole role) {
  return role == GroupRole::kData || role == GroupRole::kTensor || role == GroupRole::kEmbedding;
}

std::shared_ptr<DeviceCalls> calls_of(DeviceWorld& world, Communicator& host,
                                      std::unique_ptr<DeviceGroup> group) {
  return std::make_shared<DeviceCalls>(
      world.groups(), DeviceCalls::Members{host.name(), ranks_of(run_watch_of(host), host.size())},
      std::move(group));
}

std::unique_ptr<Communicator> DeviceComm::split(const GroupName& name, int color, int key) {
  std::unique_ptr<Communicator> host = host_.split(name, color, key);
  if (is_pipeline(name.role)) {
    if (host->size() == 1) return make_self_comm(name.text);
    const int step = name.role == GroupRole::kPipelineForward ? 1 : -1;
    return std::make_unique<PipelineComm>(world_, std::move(host), step);
  }
  const bool all_ranks = host->size() == size() && size() > 1;
  if (all_ranks && may_share(name.role) && ranks_of(run_watch_of(*host), size()) == devices_->members().ranks)
    return std::make_unique<DeviceComm>(world_, std::move(host), devices_);
  const std::vector<int> sizes = exchange_values(host_, host->size());
  if (*std::max_element(sizes.begin(), sizes.end()) == 1) return make_self_comm(name.text);
  std::unique_ptr<DeviceGroup> group;
  world_->attempt(
      [&] { return concat(name.text, ": ", step("split")); },
      [&] {
        group = devices_->group().split(
            {.name = name.text, .color = color, .key = key, .rank = host->rank(), .size = host->size()});
      });
  if (!group) return make_self_comm(name.text);
  std::shared_ptr<DeviceCalls> devices = calls_of(*world_, *host, std::move(group));
  return std::make_unique<DeviceComm>(world_, std::move(host), std::move(devices));
}

}  // namespace

std::unique_ptr<Communicator> make_device_comm(Communicator& host, Backend& backend,
                                               const DeviceCommOptions& options) {
  auto world = std::make_shared<DeviceWorld>(host, backend, options);
  const DeviceWorld::Place start = [&] {
    return concat(host.name(), ": ", world->run().name_of(host.rank()), ": start");
  };
  std::string id;
  if (host.rank() == 0) world->attempt(start, [&] { id = new_nccl_id(); });
  id = rank0_value(host, id);
  std::unique_ptr<DeviceGroup> group;
  world->attempt(start, [&] {
    group = start_nccl_group({.backend = backend,
                              .watch = *world,
                              .name = host.name(),
                              .id = id,
                              .rank = host.rank(),
                              .size = host.size(),
                              .in_rank_order = options.in_rank_order});
    group->await_start();
  });
  return std::make_unique<DeviceComm>(world, host, calls_of(*world, host, std::move(group)));
}

}  // namespace megalith
