#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/parallel/communicator.h"

namespace megalith {

/// kComm: this rank stopped because another one failed.
class Aborted : public Error {
 public:
  explicit Aborted(const std::string& what) : Error(ErrorKind::kComm, what) {}
};

/// One rank's collective call and its arguments.
struct GroupCall {
  const char* name = "";
  ConstView in = {};
  View out = {};
  std::optional<Reduce> reduce = {};
  int root = -1;
  Places places = {};  // of gather_parts and reduce_parts
  std::string_view text = {};
  Event ready = {};  // of tensors on a device that the ranks share: when they hold what the call reads
};

// Each of these describes one call of Communicator.
GroupCall all_reduce_call(const View&, Reduce);
GroupCall all_gather_call(const View& out, const ConstView& mine);
GroupCall reduce_scatter_call(const View& mine, const ConstView& in, Reduce);
GroupCall all_to_all_call(const View& out, const ConstView& in);
GroupCall broadcast_call(const View&, int root);
GroupCall gather_parts_call(const View& whole, const Places&);
GroupCall reduce_parts_call(const View& whole, Reduce, const Places&);

/// Says what is wrong with a call by rank `own` of `size`, as far as that shows without the others' calls;
/// empty if nothing is wrong.
std::string problem_of(const GroupCall&, int size, int own);

/// Whether the calls of two ranks match. Ranks whose calls do not match would read each other's memory with
/// different sizes.
bool agree(const GroupCall&, const GroupCall&);
/// "rank 0 calls all_reduce of 8 fp32 (sum), rank 1 calls ...; all ranks of a group have to make ..."
std::string disagreement(const std::string& first_rank, const GroupCall& first, const std::string& other_rank,
                         const GroupCall& other);

/// The part of `all` elements that rank i of `size` reduces. All parts but the last are whole cache lines,
/// since two ranks that write to one line would slow each other down.
struct Slice {
  int64_t begin, elements;
  Slice(int64_t all, int size, int i);
};

/// What a rank asks of a split: MPI's color and key.
struct Wish {
  int color, key, rank;
};

/// The wishes in `all` with this color, in the order of the new group.
std::vector<Wish> members_of(int color, const std::vector<Wish>& all);

// ---- parts of messages

/// "8 fp32"
std::string describe(const ConstView&);
/// "all_reduce of 8 fp32 (sum)"
std::string describe(const GroupCall&);
/// "rank 3", "ranks 3, 5"
std::string list_ranks(const std::vector<int>& ranks);
/// "timed out after 600 s waiting for rank 3; ..."
std::string timed_out_text(std::chrono::milliseconds timeout, const std::string& for_whom);
/// "would wait forever for rank 3, which left the group"
std::string peer_left_text(const std::string& for_whom);
/// "place 3 of 2 is not a peer of place 0"; empty if `peer` is one.
std::string peer_problem(int peer, int size, int own);
/// Says that a message of `bytes` bytes does not fit into one of `slots` slots of `slot_bytes` bytes; empty
/// if it fits.
std::string slot_problem(size_t bytes, size_t slots, size_t slot_bytes);

}  // namespace megalith
