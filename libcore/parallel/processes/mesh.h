#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "libcore/parallel/exchange.h"

namespace megalith {

/// Memory of this process that messages leave from or come into, while the object lives. A message goes from
/// one rank to another in a numbered slot; those of one slot are received in the order of receive() calls,
/// each of as many bytes as its receive() has room for, or fewer. Either side may come first, because a send
/// waits for its receive in the background. Any thread may call.
class MeshBuffer {
 public:
  enum class Direction { kSend, kReceive };
  enum class Outcome {
    kDone,         // one more message was sent or received
    kInterrupted,  // interrupt() was called, maybe before
    kLost,         // the connection to a peer of this buffer is broken
  };
  struct Part {
    uint64_t slot;
    size_t offset, bytes;  // of the memory
  };

  virtual ~MeshBuffer() = default;
  // These return at once. On a broken connection they do nothing, since wait() tells.
  virtual void send(int peer, const Part&) = 0;
  virtual void receive(int peer, const Part&) = 0;
  /// For a message of that direction; each is waited for once. A broken connection is told before an
  /// interruption.
  virtual Outcome wait(Direction) = 0;
  /// Ends the wait of that direction, or the next one: that only looks, then.
  virtual void interrupt(Direction) = 0;
};

/// Connections between every two ranks, each a process. They are neither encrypted nor authenticated, so the
/// network must be trusted.
class Mesh {
 public:
  virtual ~Mesh() = default;
  virtual std::unique_ptr<MeshBuffer> buffer(void* memory, size_t bytes) = 0;
};

struct MeshOptions {
  int rank = 0, size = 1;
  HostExchange exchange;
  std::string interface_address;  // IP address to bind to, which peers are told
  std::chrono::milliseconds timeout = std::chrono::minutes(10);  // for a connection to be made
  std::function<std::string(int rank)> name_of;                  // for messages: "rank 3 on host a"
};

}  // namespace megalith
