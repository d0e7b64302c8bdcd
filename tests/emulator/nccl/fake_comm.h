#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nccl.h>

#include "tests/emulator/nccl/nccl_faults.h"
#include "tests/emulator/nccl/shared_world.h"

namespace megalith::emulator {

/// One rank's side of a communicator. What it keeps of NCCL: calls enqueue; a collective ends when every rank
/// has come, a message when its other end has; calls of one communicator run one after another, in the order
/// in which the host made them, whatever their streams; those of a group run together; a communicator that
/// does not block takes up its work only while its host asks for its state; the end of a peer's process, and
/// a peer that aborts, are reported there. Calls may be captured: each launch of the graph is a call then.
/// Stricter than NCCL: no message is buffered, and ranks whose calls disagree end, also where NCCL only asks
/// that a call is captured by all ranks or by none. A communicator that ends before the graphs of its calls
/// ends the process, since NCCL would wait for them for ever.
class FakeComm : public std::enable_shared_from_this<FakeComm> {
 public:
  struct Setup {
    std::string world;  // the shared memory's name
    int rank, size, origin;
    std::string name;
    bool blocking;
  };
  /// One call of the host.
  struct Call {
    SharedCall shared;
    const void* in;
    void* out;
    int to = -1, from = -1;  // the places of a message's ends
    cudaStream_t stream;
  };

  explicit FakeComm(const Setup& setup);
  ~FakeComm();
  FakeComm(const FakeComm&) = delete;
  FakeComm& operator=(const FakeComm&) = delete;

  int rank() const { return setup_.rank; }
  int size() const { return setup_.size; }
  const Setup& setup() const { return setup_; }
  int device() const { return device_; }

  /// Whether a fault lets NCCL refuse the next call, start or end.
  bool refuses(NcclFaults::Where) const;

  /// Notes that the host starts the communicator by itself, not by a split of another one.
  void begin_start() const { begin(NcclFaults::kStart); }
  /// Calls that run together.
  ncclResult_t launch(std::vector<Call> calls);
  ncclResult_t state();
  ncclResult_t split(int color, int key, ncclComm_t* made, const ncclConfig_t& config);
  ncclResult_t finalize();
  /// Writes what the communicator has moved to the file MEGALITH_NCCL_COUNTS.
  ncclResult_t destroy();
  /// Lets its work end. The caller then waits for the device.
  void abort();

 private:
  struct Work;
  struct Split {
    int color;
    std::string name;
    ncclComm_t* made;
  };
  long begin(NcclFaults::Where) const;
  void require_no_graph(const char* what) const;
  std::shared_ptr<Work> begin_work(const std::vector<Call>& calls);
  void check(const Call& call) const;
  void count(const Call& call);
  void connect(const Call& call);
  void put(const std::shared_ptr<Work>& work);
  bool run(Work& work);
  bool collective(Work& work, size_t i, uint64_t turn);
  bool message(Work& work, size_t i);
  void give_result(const Call& call);
  bool agrees(const SharedCall& mine, const SharedCall& theirs, int rank) const;
  bool has_lost_a_peer();
  bool all_split() const;
  void finish_split();

  const Setup setup_;
  const int device_;
  const NcclFaults faults_;
  SharedWorld world_;
  std::mutex mutex_;  // guards what follows
  std::deque<std::shared_ptr<Work>> order_, deferred_;
  bool ready_ = false, finalized_ = false;
  int polls_ = 0;
  uint64_t collectives_ = 0, splits_ = 0, captures_ = 0;
  const std::shared_ptr<int> graphs_ = std::make_shared<int>();  // each graph with a call has copies
  long calls_ = 0, bytes_ = 0;
  std::set<std::pair<int, int>> connected_;  // kind (see log_connection()) and peer of each connection
  std::unique_ptr<Split> split_;
  bool aborted_ = false, failed_ = false;
  std::vector<int> processes_;  // of the peers that are other processes, as files, by rank; -1: none yet
};

}  // namespace megalith::emulator

/// What a ncclComm_t points to.
struct ncclComm {
  std::shared_ptr<megalith::emulator::FakeComm> comm;
};
