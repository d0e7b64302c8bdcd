#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "libcore/launch/socket.h"

namespace megalith {

/// A client of the key-value store that torchrun's agent serves to its workers (torch's TCPStore:
/// little-endian frames, no authentication). Only what the rendezvous needs.
class TorchStore {
 public:
  /// Connects; kComm if nothing answers before the deadline.
  TorchStore(const std::string& host, int port, Deadline);
  void set(std::string_view key, std::string_view value);
  /// Waits until the key is there. kComm at the deadline, or if the server is not a TCPStore.
  std::string get(std::string_view key);
  /// The address of this machine that routes to the store.
  std::string local_address() const { return socket_.local_address(); }

 private:
  Socket socket_;
  std::string where_;
  Deadline deadline_;
};

}  // namespace megalith
