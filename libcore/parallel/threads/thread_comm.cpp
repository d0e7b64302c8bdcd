#include "libcore/parallel/threads/thread_comm.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/ops/backend/shared_device.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/run_watch.h"
#include "libcore/parallel/threads/rank_work.h"
#include "libcore/parallel/threads/thread_group.h"

namespace megalith {
namespace {

/// The rank that makes a call.
struct Caller {
  std::shared_ptr<ThreadGroup> group;
  int rank;
  RankWork work = {};
};

/// This rank's part in a collective call. The constructor waits until all ranks have made the call; leave()
/// waits until no rank needs the others' memory any more, and so does the destructor when the call fails.
class Visit {
 public:
  Visit(const Caller& me, GroupCall call) : group_(*me.group), rank_(me.rank), work_(me.work) {
    const std::string problem = problem_of(call, group_.size(), rank_);
    if (!problem.empty())
      fail(ErrorKind::kInternal, group_.name(), ": rank ", group_.world_rank(rank_), ": ", call.name, ": ",
           problem);
    call.ready = work_.done();
    calls_ = group_.begin_call(rank_, call);
  }
  ~Visit() {
    if (!left_) group_.end_call(rank_);
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  /// The calls of all ranks, when their tensors may be read.
  std::span<const GroupCall> calls() const {
    for (const GroupCall& call : calls_) work_.wait(call.ready);
    return calls_;
  }
  void leave() {
    const Event done = work_.done();
    left_ = true;
    for (const Event& other : group_.end_call(rank_, done)) work_.wait(other);
  }

 private:
  ThreadGroup& group_;
  int rank_;
  RankWork work_;
  std::span<const GroupCall> calls_;
  bool left_ = false;
};

const std::byte* bytes_at(const ConstView& view, size_t offset) {
  return view.as<std::byte>() + offset;
}
std::byte* bytes_at(const View& view, size_t offset) {
  return view.as<std::byte>() + offset;
}

/// Part i of a tensor, which has as many elements as `like`.
template <class V>
V part_of(const V& whole, size_t i, const ConstView& like) {
  return {whole.template as<std::byte>() + i * like.bytes(), like.dtype, like.shape};
}

// ---- collectives, on the stream's thread, or for a device on the caller's

/// Each rank reduces one slice of all ranks' tensors, reading it in place, and writes it to all of them.
/// There are no intermediate copies. Sums are in rank order, so the result does not depend on timing.
void all_reduce(const Caller& me, const View& view, Reduce reduce) {
  Visit visit(me, all_reduce_call(view, reduce));
  const Slice slice(view.elements(), me.group->size(), me.rank);
  const size_t offset = static_cast<size_t>(slice.begin) * size_of(view.dtype);
  SliceReduction mine{
      .dtype = view.dtype, .reduce = reduce, .elements = slice.elements, .from = {}, .to = {}};
  for (const GroupCall& call : visit.calls()) {
    mine.from.push_back(bytes_at(call.in, offset));
    mine.to.push_back(bytes_at(call.out, offset));
  }
  me.work.reduce(mine);
  visit.leave();
}

void reduce_scatter(const Caller& me, const View& mine, const ConstView& in, Reduce reduce) {
  Visit visit(me, reduce_scatter_call(mine, in, reduce));
  SliceReduction slice{.dtype = in.dtype,
                       .reduce = reduce,
                       .elements = mine.elements(),
                       .from = {},
                       .to = {bytes_at(mine, 0)}};
  const size_t offset = mine.bytes() * static_cast<size_t>(me.rank);
  for (const GroupCall& call : visit.calls()) slice.from.push_back(bytes_at(call.in, offset));
  me.work.reduce(slice);
  visit.leave();
}

void all_gather(const Caller& me, const View& out, const ConstView& mine) {
  Visit visit(me, all_gather_call(out, mine));
  size_t rank = 0;
  for (const GroupCall& call : visit.calls()) me.work.copy(part_of(out, rank++, mine), call.in);
  visit.leave();
}

void all_to_all(const Caller& me, const View& out, const ConstView& in) {
  Visit visit(me, all_to_all_call(out, in));
  const ConstView part{in.data, in.dtype, {in.elements() / me.group->size()}};
  size_t rank = 0;
  for (const GroupCall& call : visit.calls())
    me.work.copy(part_of(out, rank++, part), part_of(call.in, static_cast<size_t>(me.rank), part));
  visit.leave();
}

void broadcast(const Caller& me, const View& view, int root) {
  Visit visit(me, broadcast_call(view, root));
  me.work.copy(view, visit.calls()[static_cast<size_t>(root)].in);
  visit.leave();
}

void gather_parts(const Caller& me, const View& whole, const Places& places) {
  Visit visit(me, gather_parts_call(whole, places));
  const ConstView part{whole.data, whole.dtype, {whole.elements() / me.group->size()}};
  const std::span<const GroupCall> calls = visit.calls();
  for (auto i = static_cast<size_t>(places.first); i < static_cast<size_t>(places.last); ++i)
    me.work.copy(part_of(whole, i, part), part_of(calls[i].in, i, part));
  visit.leave();
}

void reduce_parts(const Caller& me, const View& whole, Reduce reduce, const Places& places) {
  Visit visit(me, reduce_parts_call(whole, reduce, places));
  const std::span<const GroupCall> calls = visit.calls();
  if (places.contains(me.rank)) {
    const size_t offset = whole.bytes() / calls.size() * static_cast<size_t>(me.rank);
    SliceReduction slice{.dtype = whole.dtype,
                         .reduce = reduce,
                         .elements = whole.elements() / me.group->size(),
                         .from = {},
                         .to = {bytes_at(whole, offset)}};
    for (const GroupCall& call : calls) slice.from.push_back(bytes_at(call.in, offset));
    me.work.reduce(slice);
  }
  visit.leave();
}

// ---- the communicator

class ThreadComm final : public Communicator, public RunWatch {
 public:
  ThreadComm(std::shared_ptr<ThreadGroup> group, int rank) : me_{std::move(group), rank, {}} {}
  /// A rank that fails destroys its communicators while the stack unwinds. The destructor must not wait for
  /// ranks that wait for the failed one.
  ~ThreadComm() override {
    if (std::uncaught_exceptions() > exceptions_)
      abort(concat("rank ", me_.group->world_rank(me_.rank), " failed"));
    finish(me_.group->leave(me_.rank));
  }
  ThreadComm(const ThreadComm&) = delete;
  ThreadComm& operator=(const ThreadComm&) = delete;

  int rank() const override { return me_.rank; }
  int size() const override { return me_.group->size(); }
  const std::string& name() const override { return me_.group->name(); }

  void all_reduce(Stream& stream, View view, Reduce reduce) override {
    enqueue(stream, [=](const Caller& me) { megalith::all_reduce(me, view, reduce); });
  }
  void all_gather(Stream& stream, View out, ConstView mine) override {
    enqueue(stream, [=](const Caller& me) { megalith::all_gather(me, out, mine); });
  }
  void reduce_scatter(Stream& stream, View mine, ConstView in, Reduce reduce) override {
    enqueue(stream, [=](const Caller& me) { megalith::reduce_scatter(me, mine, in, reduce); });
  }
  void all_to_all(Stream& stream, View out, ConstView in) override {
    enqueue(stream, [=](const Caller& me) { megalith::all_to_all(me, out, in); });
  }
  void broadcast(Stream& stream, View view, int root) override {
    enqueue(stream, [=](const Caller& me) { megalith::broadcast(me, view, root); });
  }
  void gather_parts(Stream& stream, View whole, const Places& places) override {
    enqueue(stream, [=](const Caller& me) { megalith::gather_parts(me, whole, places); });
  }
  void reduce_parts(Stream& stream, View whole, Reduce reduce, const Places& places) override {
    enqueue(stream, [=](const Caller& me) { megalith::reduce_parts(me, whole, reduce, places); });
  }
  void set_send_slots(View memory, int slots) override { me_.group->set_slots(me_.rank, memory, slots); }
  void send(Stream& stream, ConstView view, int peer) override {
    if (is_on_cuda(stream)) sender_ = stream;
    enqueue(stream, [=](const Caller& me) { me.group->send(me.rank, view, peer, me.work); });
  }
  void recv(Stream& stream, View view, int peer) override {
    enqueue(stream, [=](const Caller& me) { me.group->recv(me.rank, view, peer, me.work); });
  }
  std::vector<std::string> exchange(std::string_view mine) override {
    std::vector<std::string> all;
    guarded(me_, [&](const Caller& me) {
      Visit visit(me, {.name = "exchange", .text = mine});
      for (const GroupCall& call : visit.calls()) all.emplace_back(call.text);
      visit.leave();
    });
    return all;
  }
  std::unique_ptr<Communicator> split(const GroupName& name, int color, int key) override;
  void abort(const std::string& why) override { me_.group->world()->abort(why); }

  bool stopped() const override { return me_.group->world()->aborted(); }
  std::string why_stopped() const override { return me_.group->world()->why(); }
  std::chrono::milliseconds timeout() const override { return me_.group->world()->timeout(); }
  void hurry(std::chrono::milliseconds timeout) override { me_.group->world()->hurry(timeout); }
  std::string name_of(int rank) const override { return concat("rank ", rank); }
  int rank_at(int place) const override { return me_.group->world_rank(place); }
  std::vector<int> left() const override {
    return ranks_that([](const ThreadWorld::RankState& state) { return state.left.load(); });
  }
  void wait_for_device(bool waits) override {
    me_.group->world()->state_of(me_.group->world_rank(me_.rank)).at_device = waits;
  }
  Absent absent() override {
    return {ranks_that([](const ThreadWorld::RankState& state) { return !state.at_device || state.left; })};
  }

 private:
  /// If the work fails, ends the run for all ranks, since others may wait for this rank in other groups.
  template <class Work>
  static void guarded(const Caller& me, const Work& work) {
    try {
      work(me);
    } catch (...) {
      me.group->world()->fail(me.group->world_rank(me.rank), std::current_exception());
      throw;
    }
  }
  /// On a device the work is enqueued here, since a host function of CUDA must not wait for other ranks, and
  /// may not call CUDA.
  template <class Work>
  void enqueue(Stream& stream, const Work& work) {
    if (is_on_cuda(stream)) return guarded(Caller{me_.group, me_.rank, RankWork(stream)}, work);
    stream.enqueue(
        [me = me_, work] { guarded(me, work); },
        [me = me_] { me.group->world()->abort(concat("rank ", me.group->world_rank(me.rank), " failed")); });
  }
  /// Waits until a device has read this rank's messages.
  void finish(const std::vector<Event>& reads) noexcept {
    if (!sender_) return;
    try {
      for (const Event& read : reads) sender_->wait(read);
    } catch (const std::exception& error) {
      tell("error: ", error.what());
    }
    sender_->finish(false);
  }
  std::vector<Wish> members(int color, int key);
  template <class Predicate>
  std::vector<int> ranks_that(const Predicate& predicate) const {
    std::vector<int> ranks;
    ThreadWorld& world = *me_.group->world();
    for (int rank = 0; rank < world.size(); ++rank)
      if (predicate(world.state_of(rank))) ranks.push_back(rank);
    return ranks;
  }

  Caller me_;
  std::optional<Stream> sender_;  // of a device, which sent the last message
  int exceptions_ = std::uncaught_exceptions();
};

std::vector<Wish> ThreadComm::members(int color, int key) {
  return members_of(color, exchange_values(*this, Wish{color, key, me_.rank}));
}

std::unique_ptr<Communicator> ThreadComm::split(const GroupName& name, int color, int key) {
  const std::vector<Wish> chosen = members(color, key);
  std::vector<int> world_ranks;
  int place = 0;
  for (const Wish& wish : chosen) {
    if (wish.rank == me_.rank) place = static_cast<int>(world_ranks.size());
    world_ranks.push_back(me_.group->world_rank(wish.rank));
  }
  std::unique_ptr<Communicator> made;
  guarded(me_, [&](const Caller& me) {
    if (place == 0)
      me.group->give(me.rank, std::make_shared<ThreadGroup>(me.group->world(), name.text, world_ranks));
    Visit visit(me, {.name = "split"});
    made = std::make_unique<ThreadComm>(me.group->take(chosen[0].rank), place);
    visit.leave();
  });
  me_.group->give(me_.rank, nullptr);
  return made;
}

void run_rank(const std::shared_ptr<ThreadGroup>& all, int rank,
              const std::function<void(Communicator&)>& body) {
  ThreadComm world(all, rank);
  try {
    body(world);
  } catch (...) {
    all->world()->fail(rank, std::current_exception());
  }
  all->world()->state_of(rank).left = true;
}

}  // namespace

void run_thread_ranks(int size, const ThreadCommOptions& options,
                      const std::function<void(Communicator& world)>& body) {
  if (size < 1) fail(ErrorKind::kInternal, "a run of ", size, " ranks");
  if (size == 1) return body(*make_self_comm());
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto world = std::make_shared<ThreadWorld>(size, options.timeout);
  const auto all = std::make_shared<ThreadGroup>(world, "world", ranks);
  std::vector<std::thread> threads;
  try {
    for (const int rank : ranks) {
      threads.emplace_back([&, rank] { run_rank(all, rank, body); });
    }
  } catch (...) {  // a thread could not be started
    world->fail(static_cast<int>(threads.size()), std::current_exception());
  }
  for (std::thread& thread : threads) thread.join();
  world->rethrow_error();
}

}  // namespace megalith
