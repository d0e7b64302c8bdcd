#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "libcore/base/error.h"
#include "libcore/parallel/threads/thread_comm.h"
#include "tests/parallel/tensors.h"

namespace megalith::test {

/// The error that a run throws: its kind and its message.
struct Failure {
  std::optional<ErrorKind> kind;  // none: it did not throw
  std::string message;
  bool tells(const std::string& part) const { return message.find(part) != std::string::npos; }
};

inline Failure failure_of(int ranks, const ThreadCommOptions& options,
                          const std::function<void(Communicator&)>& body) {
  try {
    run_thread_ranks(ranks, options, body);
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {};
}

/// The error that `part`, one rank's part of a run, throws; to be called in the rank's body.
inline Failure failure_here(const std::function<void()>& part) {
  try {
    part();
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  }
  return {};
}

/// A tensor of this rank, whose element i is 1000 * rank + i.
inline Tensor numbered(int rank, int64_t elements) {
  Tensor tensor(DType::kI32, elements);
  for (int64_t i = 0; i < elements; ++i) tensor.set(i, static_cast<double>(1000 * rank + i));
  return tensor;
}

/// A group like `world` with room for `slots` messages of `bytes` each.
class Link {
 public:
  Link(Communicator& world, int slots, int64_t bytes)
      : memory_(DType::kU8, slots * bytes), comm_(world.split("link", 0, world.rank())) {
    comm_->set_send_slots(memory_.view(), slots);
  }
  Communicator* operator->() { return comm_.get(); }

 private:
  Tensor memory_;  // outlives the communicator
  std::unique_ptr<Communicator> comm_;
};

}  // namespace megalith::test
