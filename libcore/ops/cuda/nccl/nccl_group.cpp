#include "libcore/ops/cuda/nccl/nccl_group.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend/rank_order.h"
#include "libcore/ops/cuda/backend/cuda_backend.h"
#include "libcore/ops/cuda/graph.h"
#include "libcore/ops/cuda/nccl/nccl_comm.h"
#include "libcore/ops/cuda/nccl/nccl_library.h"
#include "libcore/ops/cuda/queue.h"
#include "libcore/ops/cuda/ranks/shared_sums.h"

namespace megalith::cuda {
namespace {

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ncclFloat32;
    case DType::kBf16:
      return ncclBfloat16;
    case DType::kF16:
      return ncclFloat16;
    case DType::kF64:
      return ncclFloat64;
    case DType::kI32:
      return ncclInt32;
    case DType::kI64:
      return ncclInt64;
    case DType::kU8:
      return ncclUint8;
    case DType::kI8:
      return ncclInt8;
  }
  return ncclUint8;
}

size_t count_of(const ConstView& view) {
  return static_cast<size_t>(view.elements());
}

bool is_max(const DeviceCall& call) {
  return call.kind == DeviceCall::kMax || call.kind == DeviceCall::kScatterMax ||
         call.kind == DeviceCall::kRootMax;
}
bool reduces(const DeviceCall& call) {
  return call.kind <= DeviceCall::kRootMax;
}
bool has_root(const DeviceCall& call) {
  return call.kind == DeviceCall::kRootSum || call.kind == DeviceCall::kRootMax;
}

bool is_done(const Event& event) {
  return cudaEventQuery(static_cast<cudaEvent_t>(event.native.get())) == cudaSuccess;
}

/// `name`: for NCCL's messages, if the build's nccl.h has it.
ncclConfig_t config_of([[maybe_unused]] const char* name) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 27, 0)
  config.commName = name;
#endif
  return config;
}

/// What a group shares with those that are split from it.
struct Setting {
  DeviceWatch* watch;
  Graphs* graphs;  // of the backend
  int device;
  bool in_rank_order;
};

class NcclGroup final : public DeviceGroup, public CapturedCalls {
 public:
  NcclGroup(const Setting& setting, int rank, int size)
      : setting_(setting), rank_(rank), size_(size), comm_(*setting.watch) {}
  ~NcclGroup() override;
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  void start(const DeviceGroupStart& start);
  void await_start() override;
  uint64_t launch(Stream&, std::span<const DeviceCall>) override;
  void repeated(Stream& stream) override { note(stream); }
  std::optional<uint64_t> pending() override;
  std::string problem() override { return comm_.problem(); }
  std::unique_ptr<DeviceGroup> split(const DeviceSplit&) override;
  void begin_finish() override;
  void finish() override;
  void abort(std::span<DeviceGroup* const> groups) noexcept override;

 private:
  struct Launched {
    uint64_t turn;
    Event done;
  };
  uint64_t note(Stream&);
  void enter() const { require_success(cudaSetDevice(setting_.device), "choose a device"); }
  void enqueue(cudaStream_t, std::span<const DeviceCall>) const;
  ncclResult_t put(const DeviceCall&, cudaStream_t) const;
  void reduce_in_rank_order(Queue&, const DeviceCall&) const;

  const Setting setting_;
  const NcclLibrary& library_ = nccl();
  int rank_, size_;
  std::string name_;  // NCCL keeps its address
  NcclComm comm_;
  ncclResult_t started_ = ncclInProgress;
  std::deque<Launched> launched_;  // whose work was not done when last asked
  uint64_t turns_ = 0;
};

// ---- start and end

void NcclGroup::start(const DeviceGroupStart& start) {
  enter();
  name_ = start.name;
  ncclUniqueId id{};
  if (start.id.size() != sizeof id)
    fail(ErrorKind::kInternal, "an id of NCCL of ", start.id.size(), " bytes");
  std::memcpy(&id, start.id.data(), sizeof id);
  ncclConfig_t config = config_of(name_.c_str());
  started_ = library_.start(comm_.place(), size_, id, rank_, &config);
}

/// Reports a start that was refused only here: until the others are told, the group must not end.
void NcclGroup::await_start() {
  comm_.check(started_, "start");
  comm_.await("start");
}

std::unique_ptr<DeviceGroup> NcclGroup::split(const DeviceSplit& wanted) {
  enter();
  auto made = std::make_unique<NcclGroup>(setting_, wanted.rank, wanted.size);
  made->name_ = wanted.name;
  ncclConfig_t config = config_of(made->name_.c_str());
  const int color = wanted.size > 1 ? wanted.color : NCCL_SPLIT_NOCOLOR;
  comm_.check(library_.split(comm_.get(), color, wanted.key, made->comm_.place(), &config), "split");
  comm_.await("split");
  if (!made->comm_) return nullptr;
  made->await_start();
  return made;
}

void NcclGroup::begin_finish() {
  if (!comm_) return;
  enter();
  setting_.graphs->drop_calls();
  comm_.check(library_.finalize(comm_.get()), "end");
}

void NcclGroup::finish() {
  if (!comm_) return;
  comm_.await("end");
  comm_.check(library_.destroy(comm_.take()), "end");
}

NcclGroup::~NcclGroup() {
  DeviceGroup* const own = this;
  NcclGroup::abort({&own, 1});
}

/// In a group of calls NCCL first tells the kernels of all communicators to end, and then frees memory.
void NcclGroup::abort(std::span<DeviceGroup* const> groups) noexcept {
  cudaSetDevice(setting_.device);
  setting_.graphs->drop_calls();
  library_.begin_group();
  for (DeviceGroup* const group : groups) {
    NcclComm& comm = static_cast<NcclGroup*>(group)->comm_;
    if (comm) library_.abort(comm.take());
  }
  library_.end_group();
  for (DeviceGroup* const group : groups) static_cast<NcclGroup*>(group)->launched_.clear();
}

// ---- calls

uint64_t NcclGroup::launch(Stream& stream, std::span<const DeviceCall> calls) {
  if (!comm_) fail(ErrorKind::kInternal, "a call of a group that has ended");
  enter();
  Queue& queue = queue_of(stream);
  if (setting_.in_rank_order && reduces(calls.front()))
    for (const DeviceCall& call : calls) reduce_in_rank_order(queue, call);
  else
    enqueue(queue.stream(), calls);
  return setting_.graphs->capture_calls(*this, queue) ? 0 : note(stream);
}

/// Calls, or a repetition of captured ones, have been enqueued on the stream.
uint64_t NcclGroup::note(Stream& stream) {
  launched_.push_back({++turns_, stream.backend().record(stream)});
  return turns_;
}

void NcclGroup::enqueue(cudaStream_t stream, std::span<const DeviceCall> calls) const {
  comm_.check(library_.begin_group(), "begin a group of calls");
  ncclResult_t worst = ncclSuccess;  // the group ends in any case, or NCCL would never leave it
  for (const DeviceCall& call : calls)
    if (worst == ncclSuccess) worst = put(call, stream);
  const ncclResult_t ended = library_.end_group();
  comm_.check(worst, "enqueue");
  comm_.check(ended, "end a group of calls");
  comm_.await("enqueue");
}

ncclResult_t NcclGroup::put(const DeviceCall& call, cudaStream_t stream) const {
  const ncclDataType_t type = nccl_type(call.in ? call.in.dtype : call.out.dtype);
  const ncclComm_t comm = comm_.get();
  const ncclRedOp_t reduce = is_max(call) ? ncclMax : ncclSum;
  switch (call.kind) {
    case DeviceCall::kSum:
    case DeviceCall::kMax:
      return library_.all_reduce(call.in.data, call.out.data, count_of(call.in), type, reduce, comm, stream);
    case DeviceCall::kScatterSum:
    case DeviceCall::kScatterMax:
      return library_.reduce_scatter(call.in.data, call.out.data, count_of(call.out), type, reduce, comm,
                                     stream);
    case DeviceCall::kRootSum:
    case DeviceCall::kRootMax:
      return library_.reduce(call.in.data, call.out.data, count_of(call.in), type, reduce, call.peer, comm,
                             stream);
    case DeviceCall::kGather:
      return library_.all_gather(call.in.data, call.out.data, count_of(call.in), type, comm, stream);
    case DeviceCall::kBroadcast:
      return library_.broadcast(call.in.data, call.out.data, count_of(call.in), type, call.peer, comm,
                                stream);
    case DeviceCall::kSend:
      return library_.send(call.in.data, count_of(call.in), type, call.peer, comm, stream);
    case DeviceCall::kReceive:
      return library_.receive(call.out.data, count_of(call.out), type, call.peer, comm, stream);
  }
  return ncclInvalidArgument;
}

std::optional<uint64_t> NcclGroup::pending() {
  if (!setting_.graphs->is_capturing())
    while (!launched_.empty() && is_done(launched_.front().done)) launched_.pop_front();
  return launched_.empty() ? std::nullopt : std::optional(launched_.front().turn);
}

// ---- sums in rank order

/// These elements of a tensor.
template <class V>
V piece(const V& whole, const OrderedPart& part) {
  return whole.as_shape({whole.elements()}).rows(part.begin, part.begin + part.elements);
}

void copy(cudaStream_t stream, const View& to, const ConstView& from) {
  if (from.bytes() > 0)
    require_success(cudaMemcpyAsync(to.data, from.data, from.bytes(), cudaMemcpyDeviceToDevice, stream),
                    "copy");
}

/// The part that place `rank` of `size` reduces; a root reduces all.
OrderedPart part_of(const DeviceCall& call, int rank, int size) {
  if (has_root(call)) return {0, rank == call.peer ? call.in.elements() : 0};
  return ordered_part(call.in.elements(), rank, size);
}

/// Where the elements of `rank` lie among `parts`, in which each rank's follow those of the rank before.
View place_of(const View& parts, int rank, int size) {
  const int64_t each = parts.elements() / size;
  return piece(parts, {each * rank, each});
}

/// The messages by which rank `own` gives each other rank its part of this rank's tensor, and gets its own
/// part of theirs.
std::vector<DeviceCall> swaps(const DeviceCall& call, int own, const View& parts, int size) {
  std::vector<DeviceCall> calls;
  for (int rank = 0; rank < size; ++rank) {
    if (rank == own) continue;
    const ConstView given = piece(call.in, part_of(call, rank, size));
    const View place = place_of(parts, rank, size);
    if (given.elements() > 0) calls.push_back({.kind = DeviceCall::kSend, .in = given, .peer = rank});
    if (place.elements() > 0) calls.push_back({.kind = DeviceCall::kReceive, .out = place, .peer = rank});
  }
  return calls;
}

/// The messages by which rank `own` gives all others its part of the result, and gets theirs.
std::vector<DeviceCall> spreads(const DeviceCall& call, int own, int size) {
  const View mine = piece(call.out, part_of(call, own, size));
  std::vector<DeviceCall> calls;
  for (int rank = 0; rank < size; ++rank) {
    if (rank == own) continue;
    const View theirs = piece(call.out, part_of(call, rank, size));
    if (mine.elements() > 0) calls.push_back({.kind = DeviceCall::kSend, .in = mine, .peer = rank});
    if (theirs.elements() > 0) calls.push_back({.kind = DeviceCall::kReceive, .out = theirs, .peer = rank});
  }
  return calls;
}

/// Each rank adds up its part of all ranks' tensors, a root the whole of them. After an all-reduce it sends
/// the sum to all.
void NcclGroup::reduce_in_rank_order(Queue& queue, const DeviceCall& call) const {
  const OrderedPart own = part_of(call, rank_, size_);
  const int64_t gathered = own.elements * size_;
  const View parts{
      queue.workspace(static_cast<size_t>(gathered) * size_of(call.in.dtype)), call.in.dtype, {gathered}};
  copy(queue.stream(), place_of(parts, rank_, size_), piece(call.in, own));
  enqueue(queue.stream(), swaps(call, rank_, parts, size_));
  const bool scatters = call.kind == DeviceCall::kScatterSum || call.kind == DeviceCall::kScatterMax;
  if (own.elements > 0)
    launch_rank_sum(
        queue.stream(),
        {.ranks = size_, .elements = own.elements, .type = sum_type(call.in.dtype), .max = is_max(call)},
        JoinedParts{parts.data, scatters ? call.out.data : piece(call.out, own).data});
  if (!scatters && !has_root(call)) enqueue(queue.stream(), spreads(call, rank_, size_));
}

}  // namespace

std::string new_nccl_id() {
  ncclUniqueId id{};
  if (const ncclResult_t result = nccl().get_unique_id(&id); result != ncclSuccess)
    fail(ErrorKind::kComm, "NCCL ", nccl().version(), ": no id for a group: ", nccl().error_text(result));
  return {reinterpret_cast<const char*>(&id), sizeof id};
}

std::unique_ptr<DeviceGroup> start_nccl_group(const DeviceGroupStart& start) {
  const Setting setting{.watch = &start.watch,
                        .graphs = &graphs_of(start.backend),
                        .device = device_of(start.backend),
                        .in_rank_order = start.in_rank_order};
  auto group = std::make_unique<NcclGroup>(setting, start.rank, start.size);
  group->start(start);
  return group;
}

}  // namespace megalith::cuda
