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

/// A group of ranks that are processes, as one of them sees it. `rank` and `peer` are places in the group;
/// messages name ranks of the run. One thread at a time calls.
///
/// A collective call begins with a greeting from everybody to everybody, which says what is called, so that a
/// rank that calls something else is found before bytes are mixed up, and carries small tensors; greater ones
/// follow in segments when all greetings agree. Reductions are direct: rank i gets everybody's part i, adds
/// it up in rank order, so that the sum does not depend on who came first, and hands it out.
class ProcessGroup {
 public:
  struct Members {
    /// The same on all of them, and no other group of any of them has it, because slots are numbered by it.
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

  // As in Communicator, done on return.
  void all_reduce(const View&, Reduce);
  void all_gather(const View& out, const ConstView& mine);
  void reduce_scatter(const View& mine, const ConstView& in, Reduce);
  void all_to_all(const View& out, const ConstView& in);
  void broadcast(const View&, int root);
  std::vector<std::string> exchange(std::string_view mine);

  void set_slots(const View& memory, int slots);
  void send(const ConstView&, int peer);
  void recv(const View&, int peer);

 private:
  struct Header;
  /// Connected to one peer: where its greeting comes in, and this rank's goes out.
  struct PeerChannel {
    std::byte *received, *sent;
    std::unique_ptr<MeshBuffer> in, out;
  };
  class Transfer;
  using Transfers = std::vector<std::unique_ptr<Transfer>>;  // null at this rank's place
  /// Bytes for one peer, or from it.
  using Parts = std::vector<std::span<const std::byte>>;

  size_t inline_bytes() const;
  /// Waits until every rank has come with its call, and checks that it is the same. `parts` go along, to each
  /// peer its own, none greater than inline_bytes().
  void handshake(const GroupCall&, const Parts& parts);
  void exchange_headers(const Header&, const Parts& parts);
  void check_headers(const GroupCall&) const;
  const Header& header_of(int peer) const;  // since the last meeting
  /// What came with a peer's greeting.
  const std::byte* payload_of(int peer) const;
  /// How a tensor of `part_bytes` for each peer goes.
  bool goes_inline(size_t part_bytes) const { return part_bytes <= inline_bytes(); }

  struct Reduction;
  /// For each peer, `stride` bytes of `memory` at its place, or all of it when that is 0.
  Transfers transfers(SlotKind, std::span<std::byte> memory, size_t stride);
  static void finish(const Transfers&);
  void reduce_inline(const GroupCall&, const ConstView& own);
  void reduce_parts(const Reduction&, const Transfers& results);
  void send_parts(const Reduction&, const Transfers& own);
  void swap_parts(const Parts& out, const std::vector<std::span<std::byte>>& in);
  void unpack(const std::vector<std::span<std::byte>>& places) const;
  Parts to_all(std::span<const std::byte> bytes) const { return Parts(static_cast<size_t>(size()), bytes); }
  /// size() equal parts.
  Parts parts_of(std::span<const std::byte> whole) const;
  std::vector<std::span<std::byte>> writable_parts(const View& whole) const;

  void await(MeshBuffer&, MeshBuffer::Direction, int peer);
  std::vector<int> world_ranks(const std::vector<int>& peers) const;
  std::string names_of(const std::vector<int>& ranks) const;  // of the run
  std::string late_text(const std::vector<int>& ranks) const;
  [[noreturn]] void give_up(ProcessWorld::Waited, const std::vector<int>& missing) const;
  void check_alive() const;
  void check(const std::string& problem) const;
  /// "data: rank 3: all_reduce, call 17"
  std::string place() const;
  void begin_message(const char* call, int peer);
  void check(const ProcessMail::Trouble&) const;
  template <class Visit>
  void each_peer(const Visit& visit) const {  // beginning with the next one, so that not all press on one
    for (int step = 1; step < size(); ++step) visit((rank() + step) % size());
  }

  const std::shared_ptr<ProcessWorld> world_;
  const Members members_;
  const char* call_ = "";    // the call that is made
  uint64_t calls_ = 0;       // collective calls, sends and receives begun so far
  uint64_t handshakes_ = 0;  // collective ones
  std::unique_ptr<std::byte[]> handshake_memory_;
  std::vector<PeerChannel> channels_;
  std::unique_ptr<std::byte[]> window_;  // of segments to be reduced
  size_t window_bytes_ = 0;
  ProcessMail mail_;
};

}  // namespace megalith
