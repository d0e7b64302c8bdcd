#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/tensor/device.h"

namespace megalith {

enum class Reduce { kSum, kMax };  // kMax gives NaN if any rank has NaN; over NCCL it may lose it

/// What a group is for: one of the groups of a run (parallel/groups.h), or another one (kOther).
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

/// Consecutive places of a group: [first, last).
struct Places {
  int first = 0, last = 0;
  bool contains(int place) const { return first <= place && place < last; }
};

/// A group of ranks. A group may have one rank: every call then copies or does nothing.
///
/// Tensor calls enqueue work on the Stream; a View must stay valid until that work is done. A communicator is
/// used by one stream at a time, which must be synchronized before exchange() and split(). All ranks of a
/// group make the same collective calls (same dtype, same number of elements) in the same order.
///
/// Reductions accept fp32, bf16, fp16, fp64, i32 and i64. On hosts they add in rank order, 16-bit types in
/// fp32 with one rounding, so a result is the same on all ranks and in all runs; for NCCL see device_comm.h.
///
/// An error names the group, the rank, the call and its number: kComm when a peer failed or did not come in
/// time, kInternal (over NCCL kComm) when the ranks' calls disagree. After an error every call fails.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name() const = 0;  // "world", "data", "tensor"

  virtual void all_reduce(Stream&, View, Reduce) = 0;
  /// Concatenates the tensors `mine` of all ranks in `out`; `mine` may be this rank's part of `out`.
  virtual void all_gather(Stream&, View out, ConstView mine) = 0;
  /// Reduces `in` over the ranks and splits the result into size() equal parts. This rank gets part rank() in
  /// `mine`, which may be that part of `in`.
  virtual void reduce_scatter(Stream&, View mine, ConstView in, Reduce) = 0;
  /// Splits `in` into size() equal parts and sends part i to rank i. What rank i sends here becomes part i of
  /// `out`.
  virtual void all_to_all(Stream&, View out, ConstView in) = 0;
  virtual void broadcast(Stream&, View, int root) = 0;
  /// all_gather() in place, of some parts only: of the size() equal parts of `whole`, each rank of `places`
  /// gives its own, and all ranks get these parts. The others stay.
  virtual void gather_parts(Stream&, View whole, const Places& places) = 0;
  /// reduce_scatter() in place, of some parts only: of the size() equal parts of `whole`, each rank of
  /// `places` gets the reduced part of its place. All else stays. In rank order the bits are those of
  /// reduce_scatter().
  virtual void reduce_parts(Stream&, View whole, Reduce, const Places& places) = 0;

  /// Sets the memory that holds sent messages until they are received: send() copies each message into one of
  /// `slots` equal parts of `memory`, which must outlive the communicator. On destruction the communicator
  /// waits until all messages have been received. kInternal if a message is still in the previous slots.
  virtual void set_send_slots(View memory, int slots) = 0;
  /// Waits only while no slot is free, not for the receiver, so two ranks that send to each other do not
  /// block. Messages from one rank to another arrive in order. kInternal for a tensor larger than a slot.
  virtual void send(Stream&, ConstView, int peer) = 0;
  virtual void recv(Stream&, View, int peer) = 0;

  /// Returns every rank's bytes in rank order. Runs on the host and is done on return, so it is also a
  /// barrier. exchange_values() exchanges values instead of bytes.
  virtual std::vector<std::string> exchange(std::string_view mine) = 0;
  /// Creates a group of the ranks that give the same color, ordered by (key, rank in this group), as
  /// MPI_Comm_split does. Collective, done on return.
  virtual std::unique_ptr<Communicator> split(const GroupName& name, int color, int key) = 0;
  /// Wakes every peer that waits, in this group and in all others of the run; each of them throws an error
  /// with this message.
  virtual void abort(const std::string& why) = 0;
};

/// A group of this process alone.
std::unique_ptr<Communicator> make_self_comm(std::string name = "world");

}  // namespace megalith
