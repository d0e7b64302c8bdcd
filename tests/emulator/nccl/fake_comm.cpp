#include "tests/emulator/nccl/fake_comm.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <tuple>
#include <utility>

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/emulator/memory.h"
#include "tests/emulator/nccl/fake_log.h"
#include "tests/emulator/nccl/ring_sums.h"
#include "tests/emulator/report.h"
#include "tests/emulator/streams.h"

namespace megalith::emulator {
namespace {

using Clock = std::chrono::steady_clock;

// What this rank has asked of all its communicators, by NcclFaults::Where.
thread_local long asked_before[] = {0, 0, 0};

size_t bytes_of(const SharedCall& call) {
  return call.elements * size_of(static_cast<ncclDataType_t>(call.type));
}

/// Whether a rank's `in`, or its `out`, has the elements of all ranks.
bool gives_all(const SharedCall& call) {
  return call.kind == SharedCall::kReduceScatter;
}
bool gets_all(const SharedCall& call) {
  return call.kind == SharedCall::kAllGather;
}

}  // namespace

/// Calls that run together, on one stream.
struct FakeComm::Work {
  std::vector<Call> calls;
  cudaStream_t stream;
  uint64_t turn = 0;      // of its first collective call
  bool stuck = false;     // by a fault
  bool captured = false;  // begin_work() makes other work of it for each launch of its graph
  std::vector<bool> given, done;
  Clock::time_point begin = {};
};

FakeComm::FakeComm(const Setup& setup)
    : setup_(setup),
      device_(chosen_device()),
      faults_(NcclFaults::of(setup.origin)),
      world_(setup.world, setup.size),
      processes_(static_cast<size_t>(setup.size), -1) {
  if (setup.blocking) end_with("nccl: a communicator that blocks; this library starts none");
  world_.join(setup.rank);
}

FakeComm::~FakeComm() {
  for (const int process : processes_)
    if (process >= 0) close(process);
}

// ---- calls of the host

void FakeComm::check(const Call& call) const {
  Streams::get().require_no_host_function();
  if (chosen_device() != device_ || Streams::get().device_of(call.stream) != device_)
    end_with("nccl: a communicator of device " + std::to_string(device_) + " is used with another device");
  const size_t part = bytes_of(call.shared), all = part * static_cast<size_t>(size());
  const auto require = [&](const void* memory, bool whole) {
    if (memory != nullptr)
      DeviceMemory::get().require_block(memory, whole ? all : part, {device_, "a call of NCCL"});
  };
  require(call.in, gives_all(call.shared));
  require(call.out, gets_all(call.shared));
  for (const int peer : {call.to, call.from})
    if (peer >= size()) end_with("nccl: no rank " + std::to_string(peer));
}

void FakeComm::count(const Call& call) {
  if (call.from >= 0) return;  // its sender counts a message
  const bool all = gives_all(call.shared) || gets_all(call.shared);
  ++calls_;
  bytes_ += static_cast<long>(bytes_of(call.shared)) * (all ? size() : 1);
}

/// A rank connects to the next one of the ring, or to a message's receiver, when a call first needs it.
void FakeComm::connect(const Call& call) {
  const bool message = call.shared.kind == SharedCall::kMessage;
  const int peer = message ? call.to : (rank() + 1) % size();
  if (peer < 0 || peer == rank() || !connected_.emplace(message, peer).second) return;
  log_connection(message, rank(), device_, peer);
}

bool FakeComm::refuses(NcclFaults::Where where) const {
  return faults_.is(NcclFaults::kRefuse, asked_before[where], where);
}

/// The number of this call, start or end. If a fault says so, the process dies at it, or it does not return.
long FakeComm::begin(NcclFaults::Where where) const {
  const long number = asked_before[where]++;
  const bool dies = faults_.is(NcclFaults::kKill, number, where),
             blocks = faults_.is(NcclFaults::kBlock, number, where);
  if (!dies && !blocks) return number;
  if (const char* const path = std::getenv("MEGALITH_NCCL_STRUCK")) std::ofstream(path) << setup_.origin;
  if (dies) kill(getpid(), SIGKILL);
  while (true) pause();
}

ncclResult_t FakeComm::launch(std::vector<Call> calls) {
  if (!ready_ || finalized_ || split_) return ncclInvalidUsage;
  const cudaStream_t stream = calls.front().stream;
  for (const Call& call : calls) {
    check(call);
    connect(call);
    if (call.stream != stream) end_with("nccl: a group of calls on several streams");
  }
  std::shared_ptr<Work> work;
  if (stream != nullptr && stream->capture) {
    for (Call& call : calls) call.shared.captured = captures_ + 1;
    ++captures_;
    work = std::make_shared<Work>();
    work->calls = std::move(calls);
    work->stream = stream;
    work->captured = true;
  } else {
    work = begin_work(calls);
  }
  const std::lock_guard lock(mutex_);
  deferred_.push_back(std::move(work));
  return ncclInProgress;
}

/// Calls as the device's next work of the communicator.
std::shared_ptr<FakeComm::Work> FakeComm::begin_work(const std::vector<Call>& calls) {
  for (const Call& call : calls) count(call);
  const long number = begin(NcclFaults::kCall);
  const std::lock_guard lock(mutex_);
  const bool fails = faults_.is(NcclFaults::kRemote, number);
  auto work = std::make_shared<Work>();
  work->stream = calls.front().stream;
  work->turn = collectives_;
  work->stuck = fails || faults_.is(NcclFaults::kHang, number);
  work->given.resize(calls.size());
  work->done.resize(calls.size());
  for (const Call& call : calls) collectives_ += call.shared.kind != SharedCall::kMessage;
  work->calls = calls;
  failed_ = failed_ || fails;
  return work;
}

void FakeComm::put(const std::shared_ptr<Work>& work) {
  const auto run = [](const std::shared_ptr<FakeComm>& self, const std::shared_ptr<Work>& made) {
    return [self, made] { return self->run(*made); };
  };
  if (!work->captured) return Streams::get().enqueue_outside(work->stream, run(shared_from_this(), work));
  Streams::get().capture_outside(work->stream, [=, self = shared_from_this(), held = graphs_] {
    const std::shared_ptr<Work> launched = self->begin_work(work->calls);
    const std::lock_guard lock(self->mutex_);
    self->order_.push_back(launched);
    return run(self, launched);
  });
}

void FakeComm::require_no_graph(const char* what) const {
  if (graphs_.use_count() > 1)
    end_with("nccl: " + setup_.name + ": " + what + " before the graphs of its calls are destroyed");
}

/// Whether a peer has aborted the communicator, or its process has ended before it left in order.
bool FakeComm::has_lost_a_peer() {
  std::vector<pollfd> asked;
  for (int rank = 0; rank < size(); ++rank) {
    const SharedWorld::Place& peer = world_.place(rank);
    if (rank == setup_.rank || !peer.joined || peer.left) continue;
    if (peer.aborted) return true;
    if (peer.process == getpid()) continue;
    int& process = processes_[static_cast<size_t>(rank)];
    if (process < 0) process = static_cast<int>(syscall(SYS_pidfd_open, peer.process.load(), 0));
    if (process < 0 && errno == ESRCH) return true;
    asked.push_back({.fd = process, .events = POLLIN, .revents = 0});
  }
  return !asked.empty() && poll(asked.data(), asked.size(), 0) > 0;
}

ncclResult_t FakeComm::state() {
  constexpr int kPolls = 2;  // so that a host that does not ask again is found out
  std::deque<std::shared_ptr<Work>> begun;
  {
    const std::lock_guard lock(mutex_);
    failed_ = failed_ || has_lost_a_peer();
    if (failed_) return ncclRemoteError;
    if (++polls_ % kPolls != 0)
      return ready_ && deferred_.empty() && !split_ && !finalized_ ? ncclSuccess : ncclInProgress;
    if (!ready_ && !world_.all_joined()) return ncclInProgress;
    ready_ = true;
    if (split_ && !all_split()) return ncclInProgress;
    if (split_) finish_split();
    for (int rank = 0; finalized_ && rank < size(); ++rank)
      if (!world_.place(rank).left) return ncclInProgress;
    begun.swap(deferred_);
    for (const auto& work : begun)
      if (!work->captured) order_.push_back(work);
  }
  for (const auto& work : begun) put(work);  // without the lock: streams hold theirs while they run this work
  return ncclSuccess;
}

ncclResult_t FakeComm::split(int color, int key, ncclComm_t* made, const ncclConfig_t& config) {
  begin(NcclFaults::kStart);
  const std::lock_guard lock(mutex_);
  if (!ready_ || finalized_ || split_ || !deferred_.empty()) return ncclInvalidUsage;
  *made = nullptr;
  SharedWorld::Place& place = world_.place(rank());
  place.wishes[splits_ % 2] = {color, key};
  place.splits = ++splits_;
  split_ = std::make_unique<Split>(Split{color, config.commName == nullptr ? "" : config.commName, made});
  return ncclInProgress;
}

bool FakeComm::all_split() const {
  for (int rank = 0; rank < size(); ++rank)
    if (world_.place(rank).splits < splits_) return false;
  return true;
}

void FakeComm::finish_split() {
  const Split mine = *std::exchange(split_, nullptr);
  if (mine.color == NCCL_SPLIT_NOCOLOR) return;
  std::vector<std::pair<int, int>> members;  // key, rank
  for (int rank = 0; rank < size(); ++rank)
    if (const auto wish = world_.place(rank).wishes[(splits_ - 1) % 2]; wish.color == mine.color)
      members.emplace_back(wish.key, rank);
  std::sort(members.begin(), members.end());
  const auto own = std::find_if(members.begin(), members.end(),
                                [this](const auto& member) { return member.second == rank(); });
  *mine.made = new ncclComm{std::make_shared<FakeComm>(
      Setup{.world = setup_.world + "." + std::to_string(splits_) + "." + std::to_string(mine.color),
            .rank = static_cast<int>(own - members.begin()),
            .size = static_cast<int>(members.size()),
            .origin = setup_.origin,
            .name = mine.name,
            .blocking = false})};
}

ncclResult_t FakeComm::finalize() {
  require_no_graph("finalized");
  begin(NcclFaults::kEnd);
  const std::lock_guard lock(mutex_);
  finalized_ = true;
  world_.place(rank()).left = true;
  return ncclInProgress;
}

ncclResult_t FakeComm::destroy() {
  const std::lock_guard lock(mutex_);
  if (!order_.empty() || !deferred_.empty())
    end_with("nccl: a communicator is destroyed before its work is done");
  if (const char* const path = std::getenv("MEGALITH_NCCL_COUNTS")) {
    std::ofstream file(path, std::ios::app);
    file << "{\"rank\": " + std::to_string(setup_.origin) + ", \"group\": \"" + setup_.name +
                "\", \"calls\": " + std::to_string(calls_) + ", \"bytes\": " + std::to_string(bytes_) + "}\n"
         << std::flush;
  }
  return ncclSuccess;
}

void FakeComm::abort() {
  require_no_graph("aborted");
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  world_.place(rank()).aborted = true;
  order_.clear();
  deferred_.clear();
}

// ---- work of the device

bool FakeComm::run(Work& work) {
  const std::lock_guard lock(mutex_);
  if (aborted_) return true;
  if (work.stuck || order_.front().get() != &work) return false;
  if (work.begin == Clock::time_point{}) work.begin = Clock::now();
  if (faults_.kind == NcclFaults::kDelay &&
      Clock::now() < work.begin + std::chrono::milliseconds(faults_.number))
    return false;
  uint64_t turn = work.turn;
  bool all = true;
  for (size_t i = 0; i < work.calls.size(); ++i) {
    Call& call = work.calls[i];
    const bool is_message = call.shared.kind == SharedCall::kMessage;
    if (!work.done[i]) work.done[i] = is_message ? message(work, i) : collective(work, i, turn);
    turn += is_message ? 0 : 1;
    all = all && work.done[i];
  }
  if (all) order_.pop_front();
  return all;
}

bool FakeComm::agrees(const SharedCall& mine, const SharedCall& theirs, int rank) const {
  if (mine == theirs) return true;
  if (faults_.hangs_where_calls_disagree) return false;
  end_with("nccl: " + setup_.name + ": the calls of ranks " + std::to_string(setup_.rank) + " and " +
           std::to_string(rank) + " disagree (NCCL would hang): " + describe(mine) + "; " + describe(theirs));
}

bool FakeComm::collective(Work& work, size_t i, uint64_t turn) {
  const Call& call = work.calls[i];
  SharedWorld::Place& mine = world_.place(rank());
  if (!work.given[i]) {
    for (int rank = 0; rank < size(); ++rank)
      if (world_.place(rank).finished < turn) return false;  // it may still read what was given before
    const size_t bytes = bytes_of(call.shared) * (gives_all(call.shared) ? static_cast<size_t>(size()) : 1);
    if (bytes > 0) std::memcpy(world_.given(rank(), bytes), call.in, bytes);
    mine.call = call.shared;
    mine.posted = turn + 1;
    work.given[i] = true;
  }
  for (int rank = 0; rank < size(); ++rank)
    if (world_.place(rank).posted < turn + 1) return false;
  for (int rank = 0; rank < size(); ++rank)
    if (!agrees(call.shared, world_.place(rank).call, rank)) return false;
  give_result(call);
  mine.finished = turn + 1;
  return true;
}

void FakeComm::give_result(const Call& call) {
  const SharedCall& shared = call.shared;
  const size_t part = bytes_of(shared);
  if (part == 0) return;
  const auto type = static_cast<ncclDataType_t>(shared.type);
  auto* const out = static_cast<std::byte*>(call.out);
  RingSum sum{.type = type,
              .reduce = static_cast<ncclRedOp_t>(shared.reduce),
              .inputs = {},
              .elements = 0,
              .first = 0};
  /// The sum of the elements that begin at `offset` of each rank's, in a ring that begins after rank `place`.
  const auto reduce = [&](int place, uint64_t offset, uint64_t elements, std::byte* to) {
    sum.inputs.clear();
    for (int rank = 0; rank < size(); ++rank)
      sum.inputs.push_back(world_.given(rank, 0) + offset * size_of(type));
    sum.elements = elements;
    sum.first = (place + 1) % size();
    reduce_ring(sum, to);
  };
  switch (shared.kind) {
    case SharedCall::kAllReduce:
      for (int place = 0; place < size(); ++place) {
        const auto all = static_cast<uint64_t>(size());
        const uint64_t begin = shared.elements * static_cast<uint64_t>(place) / all,
                       end = shared.elements * static_cast<uint64_t>(place + 1) / all;
        reduce(place, begin, end - begin, out + begin * size_of(type));
      }
      return;
    case SharedCall::kReduceScatter:
      return reduce(rank(), static_cast<uint64_t>(rank()) * shared.elements, shared.elements, out);
    case SharedCall::kReduce:
      if (rank() == shared.root) reduce(shared.root, 0, shared.elements, out);
      return;
    case SharedCall::kAllGather:
      for (int rank = 0; rank < size(); ++rank)
        std::memcpy(out + static_cast<size_t>(rank) * part, world_.given(rank, part), part);
      return;
    default:
      std::memcpy(out, world_.given(shared.root, part), part);
  }
}

bool FakeComm::message(Work& work, size_t i) {
  const Call& call = work.calls[i];
  const size_t bytes = bytes_of(call.shared);
  const bool sends = call.to >= 0;
  const int peer = sends ? call.to : call.from;
  SharedWorld::Box& box = sends ? world_.box(rank(), peer) : world_.box(peer, rank());
  if (!sends) {
    if (box.sent == box.received || !agrees(call.shared, box.call, peer)) return false;
    if (bytes > 0) std::memcpy(call.out, world_.message(peer, rank(), bytes), bytes);
    ++box.received;
    return true;
  }
  if (work.given[i]) return box.sent == box.received;
  if (box.sent != box.received) return false;
  if (bytes > 0) std::memcpy(world_.message(rank(), peer, bytes), call.in, bytes);
  box.call = call.shared;
  work.given[i] = true;
  ++box.sent;
  return false;
}

}  // namespace megalith::emulator
