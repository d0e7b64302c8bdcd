#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/parallel/group_call.h"
#include "libcore/parallel/processes/process_mail.h"
#include "libcore/parallel/processes/process_world.h"

namespace megalith {

/// One rank's side of a group of ranks that are processes. `rank` and `peer` are places in the group;
/// messages name ranks by their numbers in the run. One thread at a time calls.
///
/// A collective call begins with a handshake: every rank sends every other one a header that describes its
/// call, with the data of a small tensor. Calls that disagree are found before any data is mixed up. Larger
/// tensors follow in segments when all headers agree. Reductions are direct: rank i receives part i from all
/// ranks, adds the parts in rank order, so that the sum does not depend on the order of arrival, and sends
/// the result to all.
class ProcessGroup {
 public:
  struct Members {
    /// The group's number, which is the same on all members. No other group of any member has this number,
    /// since slots are numbered by it.
    int id;
    std::string name;
    std::vector<int> world_ranks;
    int rank;
  };
  ProcessGroup(std::shared_ptr<ProcessWorld>, Members);
  /// Waits until this rank's messages have been received.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  const std::string& name() const { return members_.name; }
  int rank() const { return members_.rank; }
  int size() const { return static_cast<int>(members_.world_ranks.size()); }
  int world_rank(int rank) const { return members_.world_ranks[static_cast<size_t>(rank)]; }
  const std::shared_ptr<ProcessWorld>& world() const { return world_; }

  // As in Communicator, but done on return.
  void all_reduce(const View&, Reduce);
  void all_gather(const View& out, const ConstView& mine);
  void reduce_scatter(const View& mine, const ConstView& in, Reduce);
  void all_to_all(const View& out, const ConstView& in);
  void broadcast(const View&, int root);
  void gather_parts(const View& whole, const Places&);
  void reduce_parts(const View& whole, Reduce, const Places&);
  std::vector<std::string> exchange(std::string_view mine);

  void set_slots(const View& memory, int slots);
  void send(const ConstView&, int peer);
  void recv(const View&, int peer);

 private:
  struct Header;
  /// The connection to one peer: memory for the header received from the peer, and for the header sent to the
  /// peer.
  struct PeerChannel {
    std::byte *received, *sent;
    std::unique_ptr<MeshBuffer> in, out;
  };
  class Transfer;
  using Transfers = std::vector<std::unique_ptr<Transfer>>;  // for each rank; null for this rank
  /// Bytes for or from each peer.
  using Parts = std::vector<std::span<const std::byte>>;

  size_t inline_bytes() const;
  /// Waits until every rank has sent its header, and checks that the calls agree. Each peer also gets its
  /// part of `parts`, at most inline_bytes() long.
  void handshake(const GroupCall&, const Parts& parts);
  void exchange_headers(const Header&, const Parts& parts);
  void check_headers(const GroupCall&) const;
  const Header& header_of(int peer) const;  // the header of the last handshake
  /// The data that came with a peer's header.
  const std::byte* payload_of(int peer) const;
  /// Whether `part_bytes` for each peer travel with the headers.
  bool goes_inline(size_t part_bytes) const { return part_bytes <= inline_bytes(); }

  struct Reduction;
  /// Transfers of `memory` with each peer: the `stride` bytes at the peer's place, or all of `memory` if
  /// `stride` is 0.
  Transfers transfers(SlotKind, std::span<std::byte> memory, size_t stride);
  static void finish(const Transfers&);
  void reduce_inline(const GroupCall&, const ConstView& own);
  void reduce_own_part(const Reduction&, const Transfers& results);
  void send_parts(const Reduction&, const Transfers& own);
  void swap_parts(const Parts& out, const std::vector<std::span<std::byte>>& in);
  void unpack(const std::vector<std::span<std::byte>>& places) const;
  Parts to_all(std::span<const std::byte> bytes) const { return Parts(static_cast<size_t>(size()), bytes); }
  /// Splits `whole` into size() equal parts.
  Parts parts_of(std::span<const std::byte> whole) const;
  std::vector<std::span<std::byte>> writable_parts(const View& whole) const;
  /// Makes the parts of other places empty.
  template <class Part>
  static std::vector<Part> parts_at(const Places& places, std::vector<Part> parts) {
    for (size_t place = 0; place < parts.size(); ++place)
      if (!places.contains(static_cast<int>(place))) parts[place] = {};
    return parts;
  }

  void await(MeshBuffer&, MeshBuffer::Direction, int peer);
  std::vector<int> world_ranks(const std::vector<int>& peers) const;
  std::string names_of(const std::vector<int>& ranks) const;  // names ranks by their numbers in the run
  std::string late_text(const std::vector<int>& ranks) const;
  [[noreturn]] void give_up(ProcessWorld::Waited, const std::vector<int>& missing) const;
  void check_alive() const;
  void check(const std::string& problem) const;
  /// "data: rank 3: all_reduce, call 17"
  std::string place() const;
  void begin_message(const char* call, int peer);
  void check(const ProcessMail::Trouble&) const;
  template <class Visit>
  void each_peer(
      const Visit& visit) const {  // begins with the next rank, so that not all send to the same peer first
    for (int step = 1; step < size(); ++step) visit((rank() + step) % size());
  }

  const std::shared_ptr<ProcessWorld> world_;
  const Members members_;
  const char* call_ = "";    // the call that is being made
  uint64_t calls_ = 0;       // collective calls, sends and receives begun so far
  uint64_t handshakes_ = 0;  // collective calls whose handshake has begun
  std::unique_ptr<std::byte[]> handshake_memory_;
  std::vector<PeerChannel> channels_;
  std::unique_ptr<std::byte[]> window_;  // holds segments to be reduced
  size_t window_bytes_ = 0;
  ProcessMail mail_;
};

}  // namespace megalith
