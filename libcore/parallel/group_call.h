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

/// A collective call as one rank makes it.
struct GroupCall {
  const char* name = "";
  ConstView in = {};
  View out = {};
  std::optional<Reduce> reduce = {};
  int root = -1;
  std::string_view text = {};
};

// The calls of Communicator as GroupCall.
GroupCall all_reduce_call(const View&, Reduce);
GroupCall all_gather_call(const View& out, const ConstView& mine);
GroupCall reduce_scatter_call(const View& mine, const ConstView& in, Reduce);
GroupCall all_to_all_call(const View& out, const ConstView& in);
GroupCall broadcast_call(const View&, int root);

/// What is wrong with a call of the rank at place `own` of `size`, seen without the other ranks; empty: it is
/// right.
std::string problem_of(const GroupCall&, int size, int own);

/// Whether two ranks make the same call, which they must: ranks that differ would read each other's memory by
/// other sizes.
bool agree(const GroupCall&, const GroupCall&);
/// "rank 0 comes with all_reduce of 8 fp32 (sum), rank 1 with ..., all ranks of a group have to make ..."
std::string disagreement(const std::string& first_rank, const GroupCall& first, const std::string& other_rank,
                         const GroupCall& other);

/// What rank i of `size` reduces of `all` elements: whole cache lines, but for the end, because two ranks
/// that write to one line would take it from each other.
struct Slice {
  int64_t begin, elements;
  Slice(int64_t all, int size, int i);
};

/// What a rank asks of a split, as MPI's color and key.
struct Wish {
  int color, key, rank;
};

/// The wishes of this color, in the new group's order.
std::vector<Wish> members_of(int color, const std::vector<Wish>& all);

// ---- messages' parts

/// "8 fp32"
std::string describe(const ConstView&);
/// "rank 3", "ranks 3, 5"
std::string list_ranks(const std::vector<int>& ranks);
/// "waited 600 s for rank 3, in vain; ..."
std::string timed_out_text(std::chrono::milliseconds timeout, const std::string& for_whom);
/// "would wait for ever for rank 3, which left the group"
std::string peer_left_text(const std::string& for_whom);
/// "place 3 of 2 is no peer of place 0"; empty when it is one
std::string peer_problem(int peer, int size, int own);
/// That a message does not fit in `slots` slots of `slot_bytes`; empty when it does.
std::string slot_problem(size_t bytes, size_t slots, size_t slot_bytes);

}  // namespace megalith
