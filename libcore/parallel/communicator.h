#pragma once

#include <memory>
#include <string>

#include "libcore/tensor/device.h"

namespace megalith {

enum class Reduce { kSum, kMax };

/// A group of ranks. Size 1 is a group: every call then copies or does nothing. Calls enqueue on the Stream;
/// a View is valid until its work is done. Reduction is in rank order, so a result is the same on every rank
/// and in every run. A failure (kComm) names rank, call and sequence number.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual void all_reduce(Stream&, View, Reduce) = 0;
  virtual void all_gather(Stream&, View out, ConstView mine) = 0;  // concatenated along axis 0
  virtual void reduce_scatter(Stream&, View mine, ConstView in, Reduce) = 0;
  virtual void all_to_all(Stream&, View out, ConstView in) = 0;
  virtual void send(Stream&, ConstView, int peer) = 0;  // never waits for its receiver
  virtual void recv(Stream&, View, int peer) = 0;
  virtual void broadcast(Stream&, View, int root) = 0;
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
  virtual void abort(const std::string& why) = 0;  // wakes every waiting peer with this message
};

/// The group of this process alone.
std::unique_ptr<Communicator> make_self_comm();

}  // namespace megalith
