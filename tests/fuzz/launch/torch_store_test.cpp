#include "libcore/launch/torch_store.h"

#include <chrono>

#include <sys/socket.h>

#include "tests/fuzz/fuzz.h"

/// Reads the answers of a server that poses as torchrun's key-value store.
MEGALITH_FUZZ_TARGET(torch_store) {
  using namespace megalith;
  const Socket listener = listen_on("127.0.0.1", 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  TorchStore store("127.0.0.1", listener.local_port(), deadline);
  const Socket server = listener.accept();
  server.send(bytes, deadline);
  ::shutdown(server.descriptor(), SHUT_WR);  // closing would discard what the store has not read
  fuzz::accept({ErrorKind::kComm}, [&] { store.get("rank0"); });
}
