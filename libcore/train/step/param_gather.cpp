#include "libcore/train/step/param_gather.h"

#include <algorithm>
#include <utility>

#include "libcore/base/text.h"
#include "libcore/tensor/span_log.h"

namespace megalith {
namespace {

/// The units of the trained parameters that lie in a bucket, in order.
std::vector<int> readers_of(const Bucket& bucket, const ParamTable& table, const ParamStore& store) {
  std::vector<int> units;
  for (const Param& param : table.all()) {
    if (!param.trainable) continue;
    const int64_t at = store.offset(param);
    if (at >= bucket.begin && at < bucket.end) units.push_back(param.unit);
  }
  std::sort(units.begin(), units.end());
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

}  // namespace

ParamGather::ParamGather(const ParamTable& table, const ParamStore& store, const Shards& shards,
                         Communicator& copies, Stream& stream)
    : store_(store), shards_(shards), copies_(copies), stream_(stream) {
  if (!shards.sharded()) return;
  for (const Bucket& bucket : store.buckets()) parts_.push_back({&bucket, readers_of(bucket, table, store)});
  std::stable_sort(parts_.begin(), parts_.end(),
                   [](const Part& a, const Part& b) { return a.readers < b.readers; });
}

void ParamGather::begin(Stream& compute) {
  if (parts_.empty()) return;
  stream_.wait(compute.record());
  for (Part& part : parts_) {
    gather(*part.bucket);
    part.done = stream_.record();
  }
}

void ParamGather::gather(const Bucket& bucket) {
  const View whole = store_.values().rows(bucket.begin, bucket.end);
  const OwnRange own = shards_.slice(bucket);
  const StreamSpan span(stream_, "gather parameters of units ", bucket.first_unit, " to ",
                        bucket.first_unit + bucket.units - 1, ", ",
                        format_bytes(static_cast<double>(whole.bytes())));
  copies_.all_gather(stream_, whole, whole.rows(own.begin, own.end));
}

void ParamGather::unit_begins(Stream& compute, int unit) {
  for (Part& part : parts_)
    if (std::binary_search(part.readers.begin(), part.readers.end(), unit)) await(compute, part);
}

void ParamGather::finish(Stream& compute) {
  for (Part& part : parts_) await(compute, part);
}

void ParamGather::await(Stream& compute, Part& part) {
  if (part.done.native) compute.wait(std::exchange(part.done, {}));
}

}  // namespace megalith
