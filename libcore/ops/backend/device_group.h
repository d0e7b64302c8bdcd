#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "libcore/tensor/device.h"

namespace megalith {

/// One call in which the devices of a group of ranks exchange tensors in their own memory.
struct DeviceCall {
  /// Those up to kRootMax reduce; of kRootSum and kRootMax only the root gets the result, in place.
  enum Kind {
    kSum,
    kMax,
    kScatterSum,
    kScatterMax,
    kRootSum,
    kRootMax,
    kGather,
    kBroadcast,
    kSend,
    kReceive
  };
  Kind kind;
  ConstView in = {};  // empty for kReceive
  View out = {};      // empty for kSend
  // The root of kRootSum, kRootMax and kBroadcast, the other end of kSend and kReceive: a place in the group.
  int peer = -1;
};

/// Waits of a host for its device, whose work may wait for other ranks.
class DeviceWatch {
 public:
  virtual ~DeviceWatch() = default;
  /// Returns when `done` does. Throws if that cannot be expected any more, after it has ended the work of the
  /// device that waits for other ranks.
  virtual void await(const std::function<bool()>& done) = 0;
  /// Ends the work of the device that waits for other ranks, because this rank fails.
  virtual void give_up() noexcept = 0;
};

/// What a rank asks of a split, and its place in the group that this makes.
struct DeviceSplit {
  std::string name;  // for NCCL's messages
  int color, key;
  int rank, size;
};

/// Ranks whose devices exchange tensors without their hosts: one communicator of NCCL. Calls enqueue work on
/// a stream of the backend that the group was made for; all ranks of a group make the same calls in the same
/// order. One thread at a time calls.
class DeviceGroup {
 public:
  virtual ~DeviceGroup() = default;

  /// Waits until all ranks have started the group, which is done in the background.
  virtual void await_start() = 0;
  /// Enqueues calls that run together, and returns their turn: the group's turns are 1, 2, 3 and so on. While
  /// the stream's work is recorded (WorkRecorder) it returns 0, and each repetition of that work has a turn.
  virtual uint64_t launch(Stream&, std::span<const DeviceCall>) = 0;
  /// The first turn whose work is not done; nothing if all is done.
  virtual std::optional<uint64_t> pending() = 0;
  /// What has gone wrong in the background, in NCCL's words; empty if nothing has.
  virtual std::string problem() = 0;
  /// Makes groups of the ranks that give the same color, ordered by key. Collective. Null on a rank whose
  /// group is to have one rank.
  virtual std::unique_ptr<DeviceGroup> split(const DeviceSplit&) = 0;
  /// Ends the group once its work is done; finish() waits until it has ended on this rank, for which NCCL may
  /// wait for the others. Recorded work with calls of groups is not repeated any more, since NCCL would wait
  /// for its end; nor is it after abort().
  virtual void begin_finish() = 0;
  virtual void finish() = 0;
  /// Ends groups of this one's device, and their work, at once: where one of them waits for other ranks, none
  /// of the others could end alone, since CUDA frees memory only when the whole device is idle.
  virtual void abort(std::span<DeviceGroup* const> groups) noexcept = 0;
};

/// How one rank starts a group.
struct DeviceGroupStart {
  Backend& backend;    // of CUDA
  DeviceWatch& watch;  // must outlive the group
  std::string name;    // for NCCL's messages
  std::string id;      // the same on all ranks of the group, by new_nccl_id() of one of them
  int rank, size;
  bool in_rank_order = false;  // sums are in rank order, as on the CPU, and not in NCCL's
};

}  // namespace megalith
