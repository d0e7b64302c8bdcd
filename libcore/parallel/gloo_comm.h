#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/parallel/communicator.h"

namespace megalith {

/// Every rank's bytes in rank order; blocking, and a barrier.
using HostExchange = std::function<std::vector<std::string>(std::string_view mine)>;

struct ProcessCommOptions {
  int rank = 0, size = 1;
  HostExchange exchange = {};
  std::string interface_address = {};  // IP to bind and to tell the others
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
  std::vector<std::string> rank_names = {};  // "rank 3 on host a", for messages; may be empty
};

/// The world of ranks that are processes.
std::unique_ptr<Communicator> make_process_comm(const ProcessCommOptions&);

}  // namespace megalith
