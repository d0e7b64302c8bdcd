#include "libcore/train/step/shards.h"

#include <algorithm>

#include "libcore/base/error.h"

namespace megalith {

Shards::Shards(const ParamStore& store, Sharding sharding, int rank, int ranks)
    : rank_(sharding == Sharding::kNone ? 0 : rank), ranks_(sharding == Sharding::kNone ? 1 : ranks) {
  const std::vector<Bucket>& buckets = store.buckets();
  for (size_t i = buckets.size(); i-- > 0;) {
    const OwnRange part = slice(buckets[i]);
    const int64_t begin = buckets[i].begin + part.begin;
    own_.push_back({begin, begin + part.elements(), elements_});
    elements_ += part.elements();
  }
}

OwnRange Shards::slice(const Bucket& bucket) const {
  if (bucket.elements() % ranks_ != 0)
    fail(ErrorKind::kInternal, "a bucket of ", bucket.elements(), " elements cannot be sharded over ", ranks_,
         " ranks");
  const int64_t part = bucket.elements() / ranks_;
  return {.begin = rank_ * part, .end = (rank_ + 1) * part};
}

std::vector<OwnedPart> owned_parts(const ParamTable& table, const ParamStore& store, const Shards& shards) {
  std::vector<OwnedPart> parts;
  for (const Param& param : table.all()) {
    if (!param.trainable) continue;  // a frozen parameter has no state
    const int64_t first = store.offset(param), last = first + param.local.elements();
    const bool seen = std::any_of(parts.begin(), parts.end(), [&](const OwnedPart& part) {
      return part.param->value.data == param.value.data;
    });
    if (seen) continue;
    for (const OwnRange& own : shards.own()) {
      const int64_t begin = std::max(first, own.begin), end = std::min(last, own.end);
      if (begin < end) parts.push_back({&param, begin - first, own.at + begin - own.begin, end - begin});
    }
  }
  return parts;
}

}  // namespace megalith
