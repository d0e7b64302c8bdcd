#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace megalith::emulator {

/// What the ranks of one collective call, or the two ends of a message, must agree on.
struct SharedCall {
  enum Kind : int { kAllReduce, kAllGather, kReduceScatter, kReduce, kBroadcast, kMessage };
  int kind = kMessage, type = 0, reduce = 0, root = 0;
  uint64_t elements = 0;
  // Which of the communicator's captured calls it is, from 1; 0: it was launched. All ranks launch a call, or
  // all launch graphs of the same capture.
  uint64_t captured = 0;
  bool operator==(const SharedCall&) const = default;
};

/// "all_reduce of 8 elements of type 7"
std::string describe(const SharedCall&);

/// The memory that the ranks of one communicator share, which are processes or threads of one machine: what
/// each of them has asked, and its data. Atomic numbers order all accesses, so no lock is held by a rank that
/// dies.
class SharedWorld {
 public:
  static constexpr int kMaxRanks = 16;

  /// A rank's side of collective calls, splits, start and end.
  struct Place {
    std::atomic<int> process;
    std::atomic<bool> joined, left, aborted;
    std::atomic<uint64_t> posted, finished;  // collective calls
    SharedCall call;                         // the one that was posted last
    std::atomic<uint64_t> splits;
    struct Wish {
      int color, key;
    } wishes[2];  // of the last two splits: a rank may begin one before all have read the one before
  };
  /// The messages from one rank to another, one at a time.
  struct Box {
    std::atomic<uint64_t> sent, received;
    SharedCall call;
  };

  /// Opens the memory of this name, which the first rank makes. Ends the process if the system refuses.
  SharedWorld(const std::string& name, int size);
  ~SharedWorld();
  SharedWorld(const SharedWorld&) = delete;
  SharedWorld& operator=(const SharedWorld&) = delete;

  const std::string& name() const { return name_; }
  int size() const { return size_; }
  Place& place(int rank) const { return head().places[rank]; }
  Box& box(int from, int to) const { return head().boxes[from][to]; }
  /// What a rank gives to a collective call. Ends the process if the bytes are more than a rank may give.
  std::byte* given(int rank, size_t bytes) const;
  /// A message.
  std::byte* message(int from, int to, size_t bytes) const;

  /// Says that this rank is there. The last one removes the memory's name.
  void join(int rank);
  bool all_joined() const;

 private:
  struct Head {
    Place places[kMaxRanks];
    Box boxes[kMaxRanks][kMaxRanks];
  };
  Head& head() const { return *reinterpret_cast<Head*>(memory_); }
  std::byte* data() const;
  size_t bytes() const;

  std::string name_;
  int size_;
  std::byte* memory_ = nullptr;
};

}  // namespace megalith::emulator
