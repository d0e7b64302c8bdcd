#include "libcore/parallel/group_call.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libcore/parallel/kernels_reduce.h"

namespace megalith {
namespace {

constexpr char kAllReduce[] = "all_reduce", kAllGather[] = "all_gather", kReduceScatter[] = "reduce_scatter",
               kAllToAll[] = "all_to_all", kBroadcast[] = "broadcast", kGatherParts[] = "gather_parts",
               kReduceParts[] = "reduce_parts";

bool is(const GroupCall& call, const char* name) {
  return std::strcmp(call.name, name) == 0;
}

bool overlap(const ConstView& a, const ConstView& b) {
  const std::byte *const first = a.as<std::byte>(), *const second = b.as<std::byte>();
  return first < second + b.bytes() && second < first + a.bytes();
}

/// Checks that `whole` has `size` parts like `part`, and that the two share memory only if `part` is part
/// `own` of `whole`.
std::string parts_problem(const ConstView& whole, const ConstView& part, int size, int own) {
  if (whole.dtype != part.dtype || whole.elements() != part.elements() * size)
    return concat("wanted ", size, " parts of ", describe(part), ", got ", describe(whole));
  if (overlap(whole, part) && part.data != whole.as<std::byte>() + part.bytes() * static_cast<size_t>(own))
    return concat("its tensors overlap outside of part ", own);
  return {};
}

std::string places_problem(const GroupCall& call, int size) {
  if (call.in.elements() % size != 0) return concat("no ", size, " equal parts of ", describe(call.in));
  if (call.places.first < 0 || call.places.first >= call.places.last || call.places.last > size)
    return concat("no places ", call.places.first, " to ", call.places.last - 1, " among ", size);
  return {};
}

}  // namespace

GroupCall all_reduce_call(const View& view, Reduce reduce) {
  return {.name = kAllReduce, .in = view, .out = view, .reduce = reduce};
}
GroupCall all_gather_call(const View& out, const ConstView& mine) {
  return {.name = kAllGather, .in = mine, .out = out};
}
GroupCall reduce_scatter_call(const View& mine, const ConstView& in, Reduce reduce) {
  return {.name = kReduceScatter, .in = in, .out = mine, .reduce = reduce};
}
GroupCall all_to_all_call(const View& out, const ConstView& in) {
  return {.name = kAllToAll, .in = in, .out = out};
}
GroupCall broadcast_call(const View& view, int root) {
  return {.name = kBroadcast, .in = view, .out = view, .root = root};
}
GroupCall gather_parts_call(const View& whole, const Places& places) {
  return {.name = kGatherParts, .in = whole, .out = whole, .places = places};
}
GroupCall reduce_parts_call(const View& whole, Reduce reduce, const Places& places) {
  return {.name = kReduceParts, .in = whole, .out = whole, .reduce = reduce, .places = places};
}

std::string problem_of(const GroupCall& call, int size, int own) {
  if (call.reduce && !can_reduce(call.in.dtype))
    return concat("no sums or maxima of ", name_of(call.in.dtype));
  if (is(call, kGatherParts) || is(call, kReduceParts)) return places_problem(call, size);
  if (is(call, kReduceScatter)) return parts_problem(call.in, call.out, size, own);
  if (is(call, kAllGather)) return parts_problem(call.out, call.in, size, own);
  if (is(call, kBroadcast) && (call.root < 0 || call.root >= size))
    return concat("no place ", call.root, " among ", size);
  if (is(call, kAllToAll) && (call.in.dtype != call.out.dtype || call.in.elements() != call.out.elements() ||
                              call.in.elements() % size != 0 || overlap(call.in, call.out)))
    return concat("wanted two separate tensors of the same type and size with ", size, " equal parts, got ",
                  call.in.shape, " ", name_of(call.in.dtype), " and ", call.out.shape, " ",
                  name_of(call.out.dtype));
  return {};
}

bool agree(const GroupCall& a, const GroupCall& b) {
  return std::strcmp(a.name, b.name) == 0 && a.in.dtype == b.in.dtype && a.in.elements() == b.in.elements() &&
         a.reduce == b.reduce && a.root == b.root && a.places.first == b.places.first &&
         a.places.last == b.places.last;
}

std::string disagreement(const std::string& first_rank, const GroupCall& first, const std::string& other_rank,
                         const GroupCall& other) {
  return concat(first_rank, " calls ", describe(first), ", ", other_rank, " calls ", describe(other),
                "; all ranks of a group have to make the same calls");
}

Slice::Slice(int64_t all, int size, int i) {
  constexpr int64_t kLine = 64;
  const int64_t part = ((all + size - 1) / size + kLine - 1) / kLine * kLine;
  begin = std::min(all, part * i);
  elements = std::min(all, begin + part) - begin;
}

std::vector<Wish> members_of(int color, const std::vector<Wish>& all) {
  std::vector<Wish> chosen;
  for (const Wish& wish : all)
    if (wish.color == color) chosen.push_back(wish);
  std::sort(chosen.begin(), chosen.end(),
            [](const Wish& a, const Wish& b) { return std::pair(a.key, a.rank) < std::pair(b.key, b.rank); });
  return chosen;
}

std::string describe(const ConstView& view) {
  return concat(view.elements(), " ", name_of(view.dtype));
}

std::string describe(const GroupCall& call) {
  std::string text = call.name;
  if (call.in.shape.rank > 0) text += " of " + describe(call.in);
  if (call.reduce) text += *call.reduce == Reduce::kSum ? " (sum)" : " (max)";
  if (call.root >= 0) text += concat(" from place ", call.root);
  if (call.places.last > 0) text += concat(" of places ", call.places.first, " to ", call.places.last - 1);
  return text;
}

std::string list_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += concat(i == 0 ? "" : ", ", ranks[i]);
  return text;
}

std::string timed_out_text(std::chrono::milliseconds timeout, const std::string& for_whom) {
  return concat("timed out after ", static_cast<double>(timeout.count()) / 1000, " s waiting for ", for_whom,
                "; if a rank may take that long, raise --distributed-timeout-minutes");
}

std::string peer_left_text(const std::string& for_whom) {
  return concat("would wait forever for ", for_whom, ", which left the group");
}

std::string peer_problem(int peer, int size, int own) {
  if (peer >= 0 && peer < size && peer != own) return {};
  return concat("place ", peer, " of ", size, " is not a peer of place ", own);
}

std::string slot_problem(size_t bytes, size_t slots, size_t slot_bytes) {
  if (slots > 0 && bytes <= slot_bytes) return {};
  return concat(bytes, " bytes do not fit in ", slots, " slots of ", slot_bytes, " bytes (set_send_slots)");
}

}  // namespace megalith
