#include "libcore/parallel/processes/gloo_comm.h"

#include <exception>
#include <filesystem>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/plugins/plugin.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/processes/process_group.h"
#include "libcore/parallel/run_watch.h"

namespace megalith {
namespace {

constexpr char kPlugin[] = "libmegalith_gloo.so";

std::unique_ptr<Mesh> connect_gloo(const MeshOptions& options) {
  static const Plugin kGloo(
      kPlugin, {.folders = own_library_folders(),
                .if_missing = "ranks that are processes need it, and it is built where Gloo is: install the "
                              "package libgloo-dev and build Megalith again, or run the ranks as threads of "
                              "one process (--nproc)",
                .if_library_missing = "install the package libgloo-dev"});
  std::unique_ptr<Mesh> mesh;
  kGloo.function<void(const MeshOptions&, std::unique_ptr<Mesh>&)>("megalith_connect_gloo")(options, mesh);
  return mesh;
}

class ProcessComm final : public Communicator, public RunWatch {
 public:
  explicit ProcessComm(std::shared_ptr<ProcessGroup> group) : group_(std::move(group)) {}
  /// A rank that fails destroys its communicators while the stack unwinds. The destructor then stops the run,
  /// so that the other ranks do not wait until the timeout.
  ~ProcessComm() override {
    if (std::uncaught_exceptions() > exceptions_) stop_failed(*group_);
  }
  ProcessComm(const ProcessComm&) = delete;
  ProcessComm& operator=(const ProcessComm&) = delete;

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  const std::string& name() const override { return group_->name(); }

  void all_reduce(Stream& stream, View view, Reduce reduce) override {
    enqueue(stream, [=](ProcessGroup& group) { group.all_reduce(view, reduce); });
  }
  void all_gather(Stream& stream, View out, ConstView mine) override {
    enqueue(stream, [=](ProcessGroup& group) { group.all_gather(out, mine); });
  }
  void reduce_scatter(Stream& stream, View mine, ConstView in, Reduce reduce) override {
    enqueue(stream, [=](ProcessGroup& group) { group.reduce_scatter(mine, in, reduce); });
  }
  void all_to_all(Stream& stream, View out, ConstView in) override {
    enqueue(stream, [=](ProcessGroup& group) { group.all_to_all(out, in); });
  }
  void broadcast(Stream& stream, View view, int root) override {
    enqueue(stream, [=](ProcessGroup& group) { group.broadcast(view, root); });
  }
  void gather_parts(Stream& stream, View whole, const Places& places) override {
    enqueue(stream, [=](ProcessGroup& group) { group.gather_parts(whole, places); });
  }
  void reduce_parts(Stream& stream, View whole, Reduce reduce, const Places& places) override {
    enqueue(stream, [=](ProcessGroup& group) { group.reduce_parts(whole, reduce, places); });
  }
  void set_send_slots(View memory, int slots) override { group_->set_slots(memory, slots); }
  void send(Stream& stream, ConstView view, int peer) override {
    enqueue(stream, [=](ProcessGroup& group) { group.send(view, peer); });
  }
  void recv(Stream& stream, View view, int peer) override {
    enqueue(stream, [=](ProcessGroup& group) { group.recv(view, peer); });
  }
  std::vector<std::string> exchange(std::string_view mine) override {
    std::vector<std::string> all;
    guarded(*group_, [&](ProcessGroup& group) { all = group.exchange(mine); });
    return all;
  }
  std::unique_ptr<Communicator> split(const GroupName& name, int color, int key) override;
  void abort(const std::string& why) override { group_->world()->stop(why); }

  bool stopped() const override { return group_->world()->stopped(); }
  std::string why_stopped() const override { return group_->world()->why(); }
  std::chrono::milliseconds timeout() const override { return group_->world()->timeout(); }
  void hurry(std::chrono::milliseconds timeout) override { group_->world()->hurry(timeout); }
  std::string name_of(int rank) const override { return group_->world()->name_of(rank); }
  int rank_at(int place) const override { return group_->world_rank(place); }
  std::vector<int> left() const override { return group_->world()->left(); }
  void wait_for_device(bool waits) override { group_->world()->note_device_wait(waits); }
  Absent absent() override {
    const ProcessWorld::Culprits away = group_->world()->away_from_devices();
    return {away.ranks, away.silent};
  }

 private:
  /// If the work fails, ends the run for all ranks, since others may wait for this rank in other groups.
  template <class Work>
  static void guarded(ProcessGroup& group, const Work& work) {
    try {
      work(group);
    } catch (...) {
      group.world()->fail(std::current_exception());
      throw;
    }
  }
  template <class Work>
  void enqueue(Stream& stream, const Work& work) {
    stream.enqueue([group = group_, work] { guarded(*group, work); },
                   [group = group_] { stop_failed(*group); });
  }
  static void stop_failed(const ProcessGroup& group) {
    ProcessWorld& world = *group.world();
    world.stop(world.name_of(world.rank()) + " failed");
  }

  std::shared_ptr<ProcessGroup> group_;
  int exceptions_ = std::uncaught_exceptions();
};

/// The ranks agree on a number for the new group: the largest of the next free numbers of all ranks. Groups
/// of different colors may have the same number: they share no member.
std::unique_ptr<Communicator> ProcessComm::split(const GroupName& name, int color, int key) {
  struct Offer {
    Wish wish;
    int group;
  };
  ProcessWorld& world = *group_->world();
  const Offer mine{{color, key, rank()}, world.next_group()};
  ProcessGroup::Members made{mine.group, name.text, {}, 0};
  std::vector<Wish> wishes;
  for (const Offer& offer : exchange_values(*this, mine)) {
    wishes.push_back(offer.wish);
    made.id = std::max(made.id, offer.group);
  }
  for (const Wish& wish : members_of(color, wishes)) {
    if (wish.rank == rank()) made.rank = static_cast<int>(made.world_ranks.size());
    made.world_ranks.push_back(group_->world_rank(wish.rank));
  }
  std::unique_ptr<Communicator> comm;
  guarded(*group_, [&](ProcessGroup& group) {
    world.use_group(made.id);
    comm = std::make_unique<ProcessComm>(std::make_shared<ProcessGroup>(group.world(), std::move(made)));
  });
  return comm;
}

void check_options(const ProcessCommOptions& options) {
  const auto size = static_cast<size_t>(options.size);
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size ||
      (!options.rank_names.empty() && options.rank_names.size() != size))
    fail(ErrorKind::kInternal, "rank ", options.rank, " of ", options.size, " with ",
         options.rank_names.size(), " names");
}

}  // namespace

bool has_process_comm() {
  for (const std::string& folder : own_library_folders()) {
    std::error_code error;
    if (std::filesystem::exists(std::filesystem::path(folder) / kPlugin, error)) return true;
  }
  return false;
}

std::unique_ptr<Communicator> make_process_comm(const ProcessCommOptions& options) {
  check_options(options);
  if (options.size == 1) return make_self_comm();
  ProcessGroup::Members all{0, "world", {}, options.rank};
  for (int rank = 0; rank < options.size; ++rank) all.world_ranks.push_back(rank);
  auto world = std::make_shared<ProcessWorld>(options, connect_gloo);
  return std::make_unique<ProcessComm>(std::make_shared<ProcessGroup>(std::move(world), std::move(all)));
}

}  // namespace megalith
