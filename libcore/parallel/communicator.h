#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/tensor/device.h"

namespace megalith {

enum class Reduce { kSum, kMax };  // kMax: NaN when any rank has NaN

/// What a group is for, of those that a run's ranks work in (parallel/groups.h).
enum class GroupRole {
  kOther,
  kWorld,
  kTensor,
  kContext,
  kContextReversed,
  kData,
  kPipelineForward,
  kPipelineBackward,
  kEmbedding
};

/// A group's name, for messages, and what it is for.
struct GroupName {
  // NOLINTNEXTLINE(google-explicit-constructor): a name alone is one, too
  GroupName(const char* name, GroupRole purpose = GroupRole::kOther) : text(name), role(purpose) {}
  std::string text;
  GroupRole role;
};

/// A group of ranks. Size 1 is a group: every call then copies or does nothing.
///
/// Tensor calls enqueue on the Stream; a View is valid until its work is done. A communicator is used from
/// one stream at a time, and for exchange() and split() that stream has to be synchronized before. The ranks
/// of a group make the same collective calls (dtype and elements alike) in the same order.
///
/// Reduction takes fp32, bf16, fp16, fp64, i32 and i64, and is done in rank order, 16-bit types in fp32 and
/// rounded once, so a result is the same on every rank and in every run.
///
/// A failure names group, rank, call and the call's number: kComm when a peer failed, or did not come in
/// time; kInternal when the ranks' calls disagree. Every call fails after it.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name() const = 0;  // "world", "data", "tensor"

  virtual void all_reduce(Stream&, View, Reduce) = 0;
  /// The ranks' `mine` one after the other, in `out`; `mine` may be this rank's part of `out`.
  virtual void all_gather(Stream&, View out, ConstView mine) = 0;
  /// This rank's part, of size() equal ones, of the reduction of `in`; `mine` may be that part of `in`.
  virtual void reduce_scatter(Stream&, View mine, ConstView in, Reduce) = 0;
  /// Part i of `in`, of size() equal ones, goes to rank i; rank i's part comes to place i of `out`.
  virtual void all_to_all(Stream&, View out, ConstView in) = 0;
  virtual void broadcast(Stream&, View, int root) = 0;

  /// Memory for messages on their way: send() copies into one of `slots` equal parts of `memory`, which must
  /// outlive the communicator. The communicator waits on destruction until they have been received. kInternal
  /// while a message is in the slots that it had.
  virtual void set_send_slots(View memory, int slots) = 0;
  /// Does not wait for its receiver, only while no slot is free, so that two ranks that send to each other do
  /// not block. Messages from one rank to another arrive in order. kInternal for a tensor greater than a
  /// slot.
  virtual void send(Stream&, ConstView, int peer) = 0;
  virtual void recv(Stream&, View, int peer) = 0;

  /// Every rank's bytes in rank order. Host only, done on return, so it is also a barrier.
  virtual std::vector<std::string> exchange(std::string_view mine) = 0;
  /// A new group of the ranks that give the same color, in the order of (key, rank here), as MPI_Comm_split
  /// makes it. Collective, done on return.
  virtual std::unique_ptr<Communicator> split(const GroupName& name, int color, int key) = 0;
  /// Wakes every peer that waits, in this group and in all others of the run, because what they wait for will
  /// not come; they throw this message.
  virtual void abort(const std::string& why) = 0;
};

/// The group of this process alone.
std::unique_ptr<Communicator> make_self_comm(std::string name = "world");

}  // namespace megalith
