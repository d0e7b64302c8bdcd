#include "libcore/parallel/processes/process_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libcore/parallel/kernels_reduce.h"

namespace megalith {
namespace {

using Direction = MeshBuffer::Direction;
using Waited = ProcessWorld::Waited;

// The most bytes of a tensor that are sent at once; bounded, so that other messages get their turn.
constexpr size_t kSegment = 512 << 10;
constexpr size_t kWindow = 4;          // segments from each peer that may wait to be reduced
constexpr size_t kInline = 128 << 10;  // up to this size, sending data with the header is no slower
// Once one header is late: the longest wait for each of the others.
constexpr std::chrono::milliseconds kLook(1);

std::span<const std::byte> bytes_of(const ConstView& view) {
  return {view.as<std::byte>(), view.bytes()};
}

void copy_if_apart(void* to, const void* from, size_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

/// Removes the const of memory that is only read or that belongs to a View, since the mesh has one kind of
/// buffer for both directions.
std::span<std::byte> writable(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

size_t segments_of(size_t bytes) {
  return (bytes + kSegment - 1) / kSegment;
}
size_t segment_bytes(size_t bytes, size_t k) {
  return std::min(kSegment, bytes - k * kSegment);
}

}  // namespace

/// Describes a rank's call. It is sent as raw memory, since all ranks of a run have the same byte order.
struct ProcessGroup::Header {
  char name[24] = {};
  DType dtype = DType::kF32;
  bool tensor = false;
  int32_t reduce = -1, root = -1;
  Places places = {};
  int64_t elements = 0;
  uint64_t text_bytes = 0;

  Header() = default;
  explicit Header(const GroupCall& call)
      : dtype(call.in.dtype),
        tensor(call.in.shape.rank > 0),
        reduce(call.reduce ? static_cast<int32_t>(*call.reduce) : -1),
        root(call.root),
        places(call.places),
        elements(call.in.elements()),
        text_bytes(call.text.size()) {
    std::string_view(call.name).copy(name, sizeof name - 1);
  }
  /// The call that this header describes; valid as long as the header.
  GroupCall call() const {
    GroupCall call{.name = name, .in = {nullptr, dtype, {}}, .root = root, .places = places};
    if (tensor) call.in.shape = {elements};
    if (reduce >= 0) call.reduce = static_cast<Reduce>(reduce);
    return call;
  }
};

/// Sends and receives the segments of one piece of memory, in order, to and from one peer.
class ProcessGroup::Transfer {
 public:
  Transfer(ProcessGroup& group, int peer, uint64_t slot, std::span<std::byte> memory)
      : group_(group),
        peer_(peer),
        slot_(slot),
        buffer_(group.world()->buffer(memory.data(), memory.size())) {}

  void send(size_t offset, size_t bytes) {
    buffer_->send(group_.world_rank(peer_), {slot_, offset, bytes});
    ++sends_;
  }
  void receive(size_t offset, size_t bytes) {
    buffer_->receive(group_.world_rank(peer_), {slot_, offset, bytes});
    ++receives_;
  }
  void await_receive() {
    group_.await(*buffer_, Direction::kReceive, peer_);
    --receives_;
  }
  void await_all() {
    while (receives_ > 0) await_receive();
    for (; sends_ > 0; --sends_) group_.await(*buffer_, Direction::kSend, peer_);
  }

 private:
  ProcessGroup& group_;
  int peer_;
  uint64_t slot_;
  std::unique_ptr<MeshBuffer> buffer_;
  size_t sends_ = 0, receives_ = 0;
};

/// Rank i reduces part i of every rank's `in`.
struct ProcessGroup::Reduction {
  struct Part {
    size_t offset, bytes;
  };
  DType dtype;
  Reduce reduce;
  std::span<const std::byte> in;
  std::byte* out;  // where this rank's reduced part goes
  std::vector<Part> parts;
};

ProcessGroup::ProcessGroup(std::shared_ptr<ProcessWorld> world, Members members)
    : world_(std::move(world)),
      members_(std::move(members)),
      mail_(*world_, members_.id, members_.world_ranks) {
  const size_t cell = sizeof(Header) + inline_bytes(), peers = static_cast<size_t>(size());
  // Does not zero the memory, so that pages that no call needs are never touched.
  handshake_memory_.reset(new std::byte[2 * peers * cell]);
  std::byte* next = handshake_memory_.get();
  for (int peer = 0; peer < size(); ++peer, next += 2 * cell)
    channels_.push_back({next, next + cell, world_->buffer(next, cell), world_->buffer(next + cell, cell)});
}

ProcessGroup::~ProcessGroup() {
  call_ = "end";
  const ProcessMail::Trouble trouble = mail_.close();
  if (trouble.waited == Waited::kLate)
    world_->stop(concat(place(), ": ", late_text(world_ranks(trouble.peers))));
}

/// The limit shrinks with the number of ranks, since each rank keeps memory for the headers of all ranks.
size_t ProcessGroup::inline_bytes() const {
  constexpr size_t kAll = 8 * kInline, kLine = 64;
  return std::min(kInline, kAll / static_cast<size_t>(size()) / kLine * kLine);
}

// ---- waits and failures

std::string ProcessGroup::place() const {
  return concat(name(), ": ", world_->name_of(world_rank(rank())), ": ", call_, ", call ", calls_);
}

void ProcessGroup::check_alive() const {
  if (world_->given_up()) throw Aborted(concat(place(), ": stopped: ", world_->why()));
}

void ProcessGroup::check(const std::string& problem) const {
  if (!problem.empty()) fail(ErrorKind::kInternal, place(), ": ", problem);
}

void ProcessGroup::await(MeshBuffer& buffer, Direction direction, int peer) {
  const Waited waited = world_->await(buffer, direction, world_rank(peer));
  if (waited != Waited::kDone) give_up(waited, {peer});
}

std::string ProcessGroup::names_of(const std::vector<int>& ranks) const {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + world_->name_of(rank);
  return text;
}

std::string ProcessGroup::late_text(const std::vector<int>& ranks) const {
  const ProcessWorld::Culprits culprits = world_->held_up_by(ranks);
  std::string text = names_of(ranks);
  if (culprits.ranks != ranks) text += ", held up by " + names_of(culprits.ranks);
  if (culprits.silent) text += ", which does not answer";
  return timed_out_text(world_->timeout(), text);
}

std::vector<int> ProcessGroup::world_ranks(const std::vector<int>& peers) const {
  std::vector<int> ranks;
  for (const int peer : peers) ranks.push_back(world_rank(peer));
  return ranks;
}

/// Finding the rank at fault takes time, and another rank may stop the run meanwhile, so that is checked once
/// more.
void ProcessGroup::give_up(Waited waited, const std::vector<int>& missing) const {
  const std::vector<int> ranks = world_ranks(missing);
  std::string text;
  if (waited == Waited::kLate) text = late_text(ranks);
  if (waited == Waited::kLeft) text = peer_left_text(names_of(ranks));
  if (world_->stopped())
    throw Aborted(concat(place(), ": stopped while it waited for ", names_of(ranks), ": ", world_->why()));
  const std::string message = concat(place(), ": ", text);
  world_->stop(message);
  throw Error(ErrorKind::kComm, message);
}

// ---- handshakes

void ProcessGroup::handshake(const GroupCall& call, const Parts& parts) {
  call_ = call.name;
  ++calls_;
  ++handshakes_;
  check_alive();
  check(problem_of(call, size(), rank()));
  exchange_headers(Header(call), parts);
  check_headers(call);
}

/// Posts receives before sends, so that a sender need not announce its message.
void ProcessGroup::exchange_headers(const Header& header, const Parts& parts) {
  const uint64_t slot = slot_of(members_.id, SlotKind::kHandshake, handshakes_);
  each_peer([&](int peer) {
    channels_[static_cast<size_t>(peer)].in->receive(world_rank(peer),
                                                     {slot, 0, sizeof(Header) + inline_bytes()});
  });
  each_peer([&](int peer) {
    const PeerChannel& channel = channels_[static_cast<size_t>(peer)];
    const std::span<const std::byte> part = parts[static_cast<size_t>(peer)];
    std::memcpy(channel.sent, &header, sizeof header);
    copy_if_apart(channel.sent + sizeof header, part.data(), part.size());
    channel.out->send(world_rank(peer), {slot, 0, sizeof header + part.size()});
  });
  std::vector<int> missing;
  Waited why = Waited::kDone;
  each_peer([&](int peer) {
    if (why == Waited::kStopped || why == Waited::kLeft) return;
    MeshBuffer& in = *channels_[static_cast<size_t>(peer)].in;
    const Waited waited = why == Waited::kDone
                              ? world_->await(in, Direction::kReceive, world_rank(peer))
                              : world_->await_for(kLook, in, Direction::kReceive, world_rank(peer));
    if (waited == Waited::kDone) return;
    missing.push_back(peer);
    if (why == Waited::kDone) why = waited;
  });
  if (why != Waited::kDone) give_up(why, missing);
  each_peer([&](int peer) { await(*channels_[static_cast<size_t>(peer)].out, Direction::kSend, peer); });
}

const ProcessGroup::Header& ProcessGroup::header_of(int peer) const {
  return *reinterpret_cast<const Header*>(channels_[static_cast<size_t>(peer)].received);
}

const std::byte* ProcessGroup::payload_of(int peer) const {
  return channels_[static_cast<size_t>(peer)].received + sizeof(Header);
}

void ProcessGroup::check_headers(const GroupCall& mine) const {
  const auto call_of = [&](int place) { return place == rank() ? mine : header_of(place).call(); };
  for (int place = 1; place < size(); ++place)
    if (!agree(call_of(0), call_of(place)))
      fail(ErrorKind::kInternal, name(), ": call ", calls_, ": ",
           disagreement(world_->name_of(world_rank(0)), call_of(0), world_->name_of(world_rank(place)),
                        call_of(place)));
}

// ---- collectives

ProcessGroup::Parts ProcessGroup::parts_of(std::span<const std::byte> whole) const {
  const size_t part = whole.size() / static_cast<size_t>(size());
  Parts parts;
  for (size_t place = 0; place < static_cast<size_t>(size()); ++place)
    parts.push_back(whole.subspan(place * part, part));
  return parts;
}

std::vector<std::span<std::byte>> ProcessGroup::writable_parts(const View& whole) const {
  std::vector<std::span<std::byte>> parts;
  for (const auto part : parts_of(bytes_of(whole))) parts.push_back(writable(part));
  return parts;
}

ProcessGroup::Transfers ProcessGroup::transfers(SlotKind kind, std::span<std::byte> memory, size_t stride) {
  Transfers made(static_cast<size_t>(size()));
  each_peer([&](int peer) {
    const auto place = static_cast<size_t>(peer);
    const auto own = stride == 0 ? memory : memory.subspan(place * stride, stride);
    made[place] = std::make_unique<Transfer>(*this, peer, slot_of(members_.id, kind, handshakes_), own);
  });
  return made;
}

/// Receives this rank's part from all others, segment by segment, and sends each segment to `results` as soon
/// as it is reduced, so that both directions are busy.
void ProcessGroup::reduce_own_part(const Reduction& call, const Transfers& results) {
  const Reduction::Part mine = call.parts[static_cast<size_t>(rank())];
  const size_t segments = segments_of(mine.bytes), stride = std::min(segments, kWindow) * kSegment;
  if (const size_t wanted = stride * static_cast<size_t>(size()); wanted > window_bytes_) {
    window_.reset(new std::byte[wanted]);
    window_bytes_ = wanted;
  }
  const Transfers inputs =
      transfers(SlotKind::kReduce, {window_.get(), stride * static_cast<size_t>(size())}, stride);
  const Transfers own = transfers(SlotKind::kReduce, writable(call.in), 0);
  const auto expect = [&](size_t k) {
    each_peer([&](int peer) {
      inputs[static_cast<size_t>(peer)]->receive(k % kWindow * kSegment, segment_bytes(mine.bytes, k));
    });
  };
  for (size_t k = 0; k < std::min(kWindow, segments); ++k) expect(k);
  send_parts(call, own);
  for (size_t k = 0; k < segments; ++k) {
    const size_t bytes = segment_bytes(mine.bytes, k);
    SliceReduction slice{.dtype = call.dtype,
                         .reduce = call.reduce,
                         .elements = static_cast<int64_t>(bytes / size_of(call.dtype)),
                         .from = {},
                         .to = {call.out + k * kSegment}};
    for (size_t place = 0; place < call.parts.size(); ++place) {
      if (inputs[place]) inputs[place]->await_receive();
      slice.from.push_back(inputs[place] ? window_.get() + place * stride + k % kWindow * kSegment
                                         : call.in.data() + mine.offset + k * kSegment);
    }
    reduce_slice(slice);
    for (const auto& result : results)
      if (result) result->send(mine.offset + k * kSegment, bytes);
    if (k + kWindow < segments) expect(k + kWindow);
  }
  finish(own);
}

/// Sends each peer its part: first the first segment to every peer, then the second, and so on.
void ProcessGroup::send_parts(const Reduction& call, const Transfers& own) {
  size_t max_segments = 0;
  for (const Reduction::Part& part : call.parts)
    max_segments = std::max(max_segments, segments_of(part.bytes));
  for (size_t k = 0; k < max_segments; ++k)
    each_peer([&](int peer) {
      const Reduction::Part& part = call.parts[static_cast<size_t>(peer)];
      if (k < segments_of(part.bytes))
        own[static_cast<size_t>(peer)]->send(part.offset + k * kSegment, segment_bytes(part.bytes, k));
    });
}

void ProcessGroup::finish(const Transfers& transfers) {
  for (const auto& transfer : transfers)
    if (transfer) transfer->await_all();
}

void ProcessGroup::reduce_inline(const GroupCall& call, const ConstView& own) {
  SliceReduction all{.dtype = own.dtype,
                     .reduce = *call.reduce,
                     .elements = own.elements(),
                     .from = {},
                     .to = {call.out.as<std::byte>()}};
  for (int place = 0; place < size(); ++place)
    all.from.push_back(place == rank() ? own.as<std::byte>() : payload_of(place));
  reduce_slice(all);
}

void ProcessGroup::all_reduce(const View& view, Reduce reduce) {
  const GroupCall call = all_reduce_call(view, reduce);
  const bool at_once = goes_inline(view.bytes());
  handshake(call, at_once ? to_all(bytes_of(view)) : to_all({}));
  if (at_once) return reduce_inline(call, view);
  Reduction reduction{view.dtype, reduce, bytes_of(view), nullptr, {}};
  for (int place = 0; place < size(); ++place) {
    const Slice slice(view.elements(), size(), place);
    reduction.parts.push_back({static_cast<size_t>(slice.begin) * size_of(view.dtype),
                               static_cast<size_t>(slice.elements) * size_of(view.dtype)});
  }
  reduction.out = view.as<std::byte>() + reduction.parts[static_cast<size_t>(rank())].offset;
  // Receives the results into the memory of this rank's own values. That is safe, since a rank sends its
  // result only after it has received these values.
  const Transfers results = transfers(SlotKind::kGather, {view.as<std::byte>(), view.bytes()}, 0);
  each_peer([&](int peer) {
    const Reduction::Part& part = reduction.parts[static_cast<size_t>(peer)];
    for (size_t k = 0; k < segments_of(part.bytes); ++k)
      results[static_cast<size_t>(peer)]->receive(part.offset + k * kSegment, segment_bytes(part.bytes, k));
  });
  reduce_own_part(reduction, results);
  finish(results);
}

void ProcessGroup::reduce_scatter(const View& mine, const ConstView& in, Reduce reduce) {
  const GroupCall call = reduce_scatter_call(mine, in, reduce);
  const bool at_once = goes_inline(mine.bytes());
  handshake(call, at_once ? parts_of(bytes_of(in)) : to_all({}));
  if (at_once) {
    const ConstView own{in.as<std::byte>() + mine.bytes() * static_cast<size_t>(rank()), mine.dtype,
                        mine.shape};
    return reduce_inline(call, own);
  }
  Reduction reduction{mine.dtype, reduce, bytes_of(in), mine.as<std::byte>(), {}};
  for (size_t place = 0; place < static_cast<size_t>(size()); ++place)
    reduction.parts.push_back({place * mine.bytes(), mine.bytes()});
  reduce_own_part(reduction, {});
}

/// Sends out[i] to peer i and receives in[i] from it; empty parts are not sent.
void ProcessGroup::swap_parts(const Parts& out, const std::vector<std::span<std::byte>>& in) {
  const uint64_t slot = slot_of(members_.id, SlotKind::kGather, handshakes_);
  Transfers all;
  size_t max_segments = 0;
  std::vector<Transfer*> senders(out.size());
  each_peer([&](int peer) {
    const auto place = static_cast<size_t>(peer);
    all.push_back(std::make_unique<Transfer>(*this, peer, slot, in[place]));
    for (size_t k = 0; k < segments_of(in[place].size()); ++k)
      all.back()->receive(k * kSegment, segment_bytes(in[place].size(), k));
    all.push_back(std::make_unique<Transfer>(*this, peer, slot, writable(out[place])));
    senders[place] = all.back().get();
    max_segments = std::max(max_segments, segments_of(out[place].size()));
  });
  for (size_t k = 0; k < max_segments; ++k)
    each_peer([&](int peer) {
      const size_t bytes = out[static_cast<size_t>(peer)].size();
      if (k < segments_of(bytes))
        senders[static_cast<size_t>(peer)]->send(k * kSegment, segment_bytes(bytes, k));
    });
  finish(all);
}

void ProcessGroup::all_gather(const View& out, const ConstView& mine) {
  const bool at_once = goes_inline(mine.bytes());
  handshake(all_gather_call(out, mine), at_once ? to_all(bytes_of(mine)) : to_all({}));
  const auto places = writable_parts(out);
  copy_if_apart(places[static_cast<size_t>(rank())].data(), mine.data, mine.bytes());
  if (at_once) return unpack(places);
  swap_parts(to_all(bytes_of(mine)), places);
}

void ProcessGroup::all_to_all(const View& out, const ConstView& in) {
  const bool at_once = goes_inline(in.bytes() / static_cast<size_t>(size()));
  const Parts parts = parts_of(bytes_of(in));
  handshake(all_to_all_call(out, in), at_once ? parts : to_all({}));
  const auto places = writable_parts(out);
  const auto own = static_cast<size_t>(rank());
  copy_if_apart(places[own].data(), parts[own].data(), parts[own].size());
  if (at_once) return unpack(places);
  swap_parts(parts, places);
}

void ProcessGroup::gather_parts(const View& whole, const Places& places) {
  const Parts parts = parts_at(places, parts_of(bytes_of(whole)));
  const Parts given = to_all(parts[static_cast<size_t>(rank())]);
  const bool at_once = goes_inline(whole.bytes() / static_cast<size_t>(size()));
  handshake(gather_parts_call(whole, places), at_once ? given : to_all({}));
  const auto gotten = parts_at(places, writable_parts(whole));
  if (at_once) return unpack(gotten);
  swap_parts(given, gotten);
}

/// A rank that gets no part only sends.
void ProcessGroup::reduce_parts(const View& whole, Reduce reduce, const Places& places) {
  const GroupCall call = reduce_parts_call(whole, reduce, places);
  const auto own = static_cast<size_t>(rank());
  const size_t part = whole.bytes() / static_cast<size_t>(size());
  const bool at_once = goes_inline(part), gets = places.contains(rank());
  handshake(call, at_once ? parts_at(places, parts_of(bytes_of(whole))) : to_all({}));
  std::byte* const mine = whole.as<std::byte>() + own * part;
  const View of_mine{mine, whole.dtype, {whole.elements() / size()}};
  if (at_once) {
    if (gets) reduce_inline(reduce_scatter_call(of_mine, whole, reduce), of_mine);
    return;
  }
  Reduction reduction{whole.dtype, reduce, bytes_of(whole), mine, {}};
  for (int place = 0; place < size(); ++place)
    reduction.parts.push_back({static_cast<size_t>(place) * part, places.contains(place) ? part : 0});
  if (gets) return reduce_own_part(reduction, {});
  const Transfers sent = transfers(SlotKind::kReduce, writable(reduction.in), 0);
  send_parts(reduction, sent);
  finish(sent);
}

/// Copies the data that came with each peer's header to that peer's place.
void ProcessGroup::unpack(const std::vector<std::span<std::byte>>& places) const {
  each_peer([&](int peer) {
    const std::span<std::byte> place = places[static_cast<size_t>(peer)];
    copy_if_apart(place.data(), payload_of(peer), place.size());
  });
}

/// Larger tensors travel along a chain of all ranks that begins at the root. Each segment is passed on at
/// once, so every rank sends and receives each byte once, instead of the root sending every byte to every
/// rank.
void ProcessGroup::broadcast(const View& view, int root) {
  const bool at_once = goes_inline(view.bytes());
  handshake(broadcast_call(view, root), at_once && rank() == root ? to_all(bytes_of(view)) : to_all({}));
  if (at_once) {
    if (rank() != root) copy_if_apart(view.data, payload_of(root), view.bytes());
    return;
  }
  const int link = (rank() - root + size()) % size();
  const Transfers chain = transfers(SlotKind::kGather, {view.as<std::byte>(), view.bytes()}, 0);
  Transfer* const before =
      link == 0 ? nullptr : chain[static_cast<size_t>((rank() + size() - 1) % size())].get();
  Transfer* const after =
      link == size() - 1 ? nullptr : chain[static_cast<size_t>((rank() + 1) % size())].get();
  const size_t segments = segments_of(view.bytes());
  for (size_t k = 0; before != nullptr && k < segments; ++k)
    before->receive(k * kSegment, segment_bytes(view.bytes(), k));
  for (size_t k = 0; k < segments; ++k) {
    if (before != nullptr) before->await_receive();
    if (after != nullptr) after->send(k * kSegment, segment_bytes(view.bytes(), k));
  }
  finish(chain);
}

std::vector<std::string> ProcessGroup::exchange(std::string_view mine) {
  const auto bytes = std::as_bytes(std::span(mine));
  const bool at_once = goes_inline(bytes.size());
  handshake({.name = "exchange", .text = mine}, at_once ? to_all(bytes) : to_all({}));
  std::vector<std::string> all(static_cast<size_t>(size()));
  std::vector<std::span<std::byte>> long_ones(all.size());
  all[static_cast<size_t>(rank())] = mine;
  each_peer([&](int peer) {
    std::string& text = all[static_cast<size_t>(peer)];
    text.resize(header_of(peer).text_bytes);
    if (goes_inline(text.size()))
      copy_if_apart(text.data(), payload_of(peer), text.size());
    else
      long_ones[static_cast<size_t>(peer)] = std::as_writable_bytes(std::span(text));
  });
  swap_parts(at_once ? to_all({}) : to_all(bytes), long_ones);
  return all;
}

// ---- messages

void ProcessGroup::set_slots(const View& memory, int slots) {
  if (slots < 1) fail(ErrorKind::kInternal, name(), ": ", slots, " slots for messages");
  if (!mail_.set_slots(memory, slots))
    fail(ErrorKind::kInternal, name(), ": ", world_->name_of(world_rank(rank())),
         " changes slots that hold a message");
}

void ProcessGroup::begin_message(const char* call, int peer) {
  call_ = call;
  ++calls_;
  check_alive();
  check(peer_problem(peer, size(), rank()));
}

void ProcessGroup::check(const ProcessMail::Trouble& trouble) const {
  check(trouble.problem);
  if (trouble) give_up(trouble.waited, trouble.peers);
}

void ProcessGroup::send(const ConstView& view, int peer) {
  begin_message("send", peer);
  check(mail_.send(view, peer));
}

void ProcessGroup::recv(const View& view, int peer) {
  begin_message("recv", peer);
  check(mail_.recv(view, peer));
}

}  // namespace megalith
