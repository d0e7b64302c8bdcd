#include "libcore/train/step/nccl_buffers.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "libcore/base/text.h"
#include "libcore/parallel/rank_communicators.h"

namespace megalith {
namespace {

// By NCCL 2.28's src/include/comm.h and p2p.h: the head of a buffer, and the multiple to which a connection's
// end is rounded up.
constexpr int64_t kHead = 4096, kMultiple = int64_t{2} << 20;
constexpr int64_t kMostChannels = 64;  // src/include/device.h

/// The value of a variable of the environment, or `otherwise` if it is no positive number.
int64_t variable(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  const auto value = text != nullptr ? parse_int(text) : std::nullopt;
  return value && *value > 0 ? *value : otherwise;
}

int64_t rounded(int64_t bytes) {
  return (kHead + bytes + kMultiple - 1) / kMultiple * kMultiple;
}

/// Ends of connections, each on all channels.
struct Ends {
  int64_t sends = 0, receives = 0;

  void add(int64_t number) {
    sends += number;
    receives += number;
  }
};

/// A group's connections: a ring, and to add in rank order, messages from each rank to each other one.
Ends ends_of(const ParallelConfig& parallel, const RankCommunicators& communicators) {
  Ends ends{communicators.sends, communicators.receives};
  for (const int ranks : communicators.groups) ends.add(parallel.rank_order ? ranks : 1);
  return ends;
}

}  // namespace

NcclSizes nccl_sizes_here() {
  NcclSizes sizes;
  for (const char* most : {"NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS"})
    sizes.channels = std::min(sizes.channels, variable(most, kMostChannels));
  for (const char* least : {"NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS"})
    sizes.channels = std::max(sizes.channels, std::min(variable(least, 1), kMostChannels));
  sizes.ll = variable("NCCL_LL_BUFFSIZE", sizes.ll);
  sizes.ll128 = variable("NCCL_LL128_BUFFSIZE", sizes.ll128);
  sizes.simple = variable("NCCL_BUFFSIZE", sizes.simple);
  const char* const mixing = std::getenv("NCCL_GRAPH_MIXING_SUPPORT");
  sizes.mixes_graphs = mixing == nullptr || parse_int(mixing) != 0;
  return sizes;
}

size_t nccl_bytes(const ParallelConfig& parallel, const Coord& at, const NcclSizes& sizes) {
  const Ends ends = ends_of(parallel, communicators_of(parallel, at));
  const int64_t channel =
      ends.sends * rounded(0) + ends.receives * rounded(sizes.ll + sizes.ll128 + sizes.simple);
  return static_cast<size_t>(sizes.channels * channel);
}

}  // namespace megalith
