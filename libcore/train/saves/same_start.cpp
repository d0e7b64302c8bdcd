#include "libcore/train/saves/same_start.h"

#include <cstdint>
#include <random>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/tensor_digest.h"
#include "libcore/hash/xxh64.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/together.h"

namespace megalith {
namespace {

/// The options of the run that saved it, and how far it had come.
std::string progress_of(const StartPoint& start) {
  if (!start.state) return start.args.dump();
  return concat(start.args.dump(), start.state->iteration, ' ', start.state->consumed_train, ' ',
                start.state->schedule_samples, ' ', start.loss_scale.dump());
}

std::string digest_of(const Origin& origin, uint64_t seed) {
  if (!origin.tensors) return {};
  const std::string tensors = tensor_digest(*origin.tensors, seed);
  return origin.start ? tensors + hex64(xxh64(progress_of(*origin.start))) : tensors;
}

void require_same(const Origin& origin, const std::vector<std::string>& digests) {
  for (size_t rank = 1; rank < digests.size(); ++rank) {
    if (digests[rank] == digests.front()) continue;
    const std::string path = origin.tensors ? concat(' ', quote(origin.tensors->path())) : std::string();
    fail(ErrorKind::kData, origin.option, path, " has other contents on rank ", rank,
         " than on rank 0; give every machine the same files");
  }
}

}  // namespace

void require_same_start(Communicator& world, std::chrono::milliseconds peer_timeout,
                        std::span<const Origin> origins) {
  if (world.size() == 1) return;
  const auto seed = rank0_value(world, uint64_t{std::random_device()()});
  for (const Origin& origin : origins) {
    std::string mine;
    do_together(world, peer_timeout, [&](const auto&) { mine = digest_of(origin, seed); });
    require_same(origin, exchange_values(world, mine));
  }
}

}  // namespace megalith
