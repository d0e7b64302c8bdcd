#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/parallel/communicator.h"

namespace megalith {

/// What a rank learns of the other ranks of its run while only its device exchanges tensors with theirs. The
/// communicators of ranks that are processes or threads are objects of this class, too. A rank here is its
/// number in the run. Any thread may call.
class RunWatch {
 public:
  virtual ~RunWatch() = default;
  virtual bool stopped() const = 0;
  virtual std::string why_stopped() const = 0;  // the first reason
  /// The longest wait for a peer.
  virtual std::chrono::milliseconds timeout() const = 0;
  /// Shortens later waits for peers to this time, where the run ends in any case.
  virtual void hurry(std::chrono::milliseconds timeout) = 0;
  virtual std::string name_of(int rank) const = 0;  // "rank 3 on host a"
  virtual int rank_at(int place) const = 0;         // the rank at a place of this group

  /// The ranks that have left the run in order.
  virtual std::vector<int> left() const = 0;

  /// Sets what this rank answers to peers that ask whether it waits for its device.
  virtual void wait_for_device(bool waits) = 0;
  struct Absent {
    std::vector<int> ranks;
    bool silent = false;  // whether their processes do not answer
  };
  /// The ranks that do not wait for their devices: those that do not answer, if there are any; otherwise
  /// those that do something else. Processes answer once in a run; later calls return none of them.
  virtual Absent absent() = 0;
};

/// The watch of the run that a communicator belongs to. kInternal if it has none.
inline RunWatch& run_watch_of(Communicator& comm) {
  if (auto* const watch = dynamic_cast<RunWatch*>(&comm)) return *watch;
  fail(ErrorKind::kInternal, comm.name(), ": this kind of communicator does not watch over its run");
}

}  // namespace megalith
