#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "libcore/parallel/exchange.h"

namespace megalith {

/// Memory of this process that messages are sent from or received into. The memory must outlive the object. A
/// message goes from one rank to another in a numbered slot. Messages in one slot are received in the order
/// of the receive() calls, and each fits in the bytes of its receive(). send() and receive() may come in any
/// order: a send waits for its receive in the background. Any thread may call.
class MeshBuffer {
 public:
  enum class Direction { kSend, kReceive };
  enum class Outcome {
    kDone,         // one more message was sent or received
    kInterrupted,  // interrupt() was called, possibly before the wait
    kLost,         // the connection to a peer of this buffer is broken
  };
  struct Part {
    uint64_t slot;
    size_t offset, bytes;  // within the memory
  };

  virtual ~MeshBuffer() = default;
  // These return at once. On a broken connection they do nothing: wait() reports it.
  virtual void send(int peer, const Part&) = 0;
  virtual void receive(int peer, const Part&) = 0;
  /// Waits until one more message in that direction is done; to be called once for each message. A broken
  /// connection is reported before an interruption.
  virtual Outcome wait(Direction) = 0;
  /// Ends the current wait in that direction. If there is none, the next wait only checks and does not block.
  virtual void interrupt(Direction) = 0;
};

/// Connections between all pairs of ranks, which are processes. They are neither encrypted nor authenticated:
/// the network must be trusted.
class Mesh {
 public:
  virtual ~Mesh() = default;
  virtual std::unique_ptr<MeshBuffer> buffer(void* memory, size_t bytes) = 0;
};

struct MeshOptions {
  int rank = 0, size = 1;
  HostExchange exchange;
  std::string interface_address;  // IP address to bind to; the peers connect to it
  std::chrono::milliseconds timeout = std::chrono::minutes(10);  // the longest wait for a connection
  std::function<std::string(int rank)> name_of;                  // for messages: "rank 3 on host a"
};

}  // namespace megalith
