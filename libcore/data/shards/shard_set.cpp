#include "libcore/data/shards/shard_set.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/shards/shard.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// Takes the digits at the front of `text`, at least five.
std::optional<int64_t> take_number(std::string_view& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = digits < 5 ? std::nullopt : parse_int(text.substr(0, digits));
  text.remove_prefix(digits);
  return number;
}

/// The shard in the name of a file, "-00003-of-00020_text_document.json" or "-00003-of-00020.failed.json",
/// without the prefix of all shards. Nothing for other names.
std::optional<Shard> shard_in(std::string_view name) {
  constexpr std::string_view kOf = "-of-";
  if (!name.starts_with('-') || !name.ends_with(".json")) return std::nullopt;
  name.remove_prefix(1);
  const auto index = take_number(name);
  if (!index || !name.starts_with(kOf)) return std::nullopt;
  name.remove_prefix(kOf.size());
  const auto count = take_number(name);
  if (!count || (!name.starts_with('_') && !name.starts_with(".failed"))) return std::nullopt;
  return Shard{*index, *count};
}

/// A shard of which something is there, and the prefixes of its datasets that have a sidecar, in any order.
struct Found {
  Shard shard;
  std::vector<std::string> datasets;
};

/// Those in the folder of `prefix`, in order.
std::vector<Found> shards_there(const std::string& prefix) {
  const std::string own = fs::path(prefix).filename().string();
  const fs::path folder = parent_or_here(prefix);
  std::map<std::pair<int64_t, int64_t>, Found> found;
  std::error_code reason;
  for (auto entry = fs::directory_iterator(folder, reason); !reason && entry != fs::directory_iterator();
       entry.increment(reason)) {
    const std::string name = entry->path().filename().string();
    const auto shard =
        name.starts_with(own) ? shard_in(std::string_view(name).substr(own.size())) : std::nullopt;
    if (!shard) continue;
    Found& one = found.try_emplace({shard->count, shard->index}, Found{*shard, {}}).first->second;
    if (!name.ends_with(".failed.json"))
      one.datasets.push_back(prefix + name.substr(own.size(), name.rfind('.') - own.size()));
  }
  if (reason && fs::exists(folder))
    fail(ErrorKind::kIo, folder.string(), ": cannot read the folder: ", reason.message());
  std::vector<Found> shards;
  for (auto& [numbers, one] : found) shards.push_back(std::move(one));
  return shards;
}

/// What the sidecar of a dataset says of its shard; nothing if the dataset is not complete.
std::optional<ShardRecord> record_of(const std::string& dataset) {
  if (!file_exists(dataset + ".bin") || !file_exists(dataset + ".idx")) return std::nullopt;
  const std::optional<Sidecar> sidecar = read_sidecar(dataset);
  return sidecar ? sidecar->shard : std::nullopt;
}

/// What the sidecars of a shard's datasets say; nothing if not all of the datasets of a run are there. Throws
/// kData if those of two runs are, with other keys.
std::optional<ShardRecord> record_of(const std::string& prefix, const Found& found) {
  std::map<std::string, ShardRecord> records;
  for (const std::string& dataset : found.datasets)
    if (auto record = record_of(dataset)) records.emplace(dataset, std::move(*record));
  std::optional<ShardRecord> whole;
  std::string first;
  for (const auto& [dataset, record] : records) {
    if (whole == record) continue;
    if (Shard{record.index, record.count} != found.shard)
      fail(ErrorKind::kData, dataset, ": is shard ", record.index, " of ", record.count,
           " under the name of another, so that it is there twice or out of place; give it its own name, or "
           "do shard ",
           found.shard.index, " again");
    const auto is_there = [&, &record = record](const std::string& name) {
      const auto other = records.find(concat(prefix, found.shard.suffix(), "_", name));
      return other != records.end() && other->second == record;
    };
    if (!std::all_of(record.datasets.begin(), record.datasets.end(), is_there)) continue;
    if (whole)
      fail(ErrorKind::kData, dataset, ": is of another run than ", first,
           ", and both are complete; remove the datasets of the run that is wrong");
    whole = record;
    first = dataset;
  }
  return whole;
}

/// Throws kData unless all shards are of one run.
void check_together(const std::string& prefix, const ShardSet& set) {
  const auto name = [&](int64_t index) { return prefix + Shard{index, set.count}.suffix(); };
  const ShardRecord* before = nullptr;
  for (const auto& [index, record] : set.complete) {
    const ShardRecord& first = set.complete.begin()->second;
    if (record.plan != first.plan || record.options != first.options || record.datasets != first.datasets)
      fail(ErrorKind::kData, name(index), ": is a shard of a run with other ",
           record.plan != first.plan ? "inputs" : "options", " than that of ", name(first.index),
           "; remove the one that is wrong, and do it again");
    if (before && before->index + 1 == index && !(before->end == record.begin))
      fail(ErrorKind::kData, name(index), ": does not begin where ", name(before->index),
           " ends: the inputs were changed between the two runs; do both again");
    before = &record;
  }
}

}  // namespace

ShardSet find_shards(const std::string& prefix, std::optional<int64_t> count) {
  const std::vector<Found> there = shards_there(prefix);
  if (there.empty() && !count)
    fail(ErrorKind::kNoInput, prefix,
         "-…-of-…: there is nothing of a shard; give the --output-prefix of "
         "megalith-preprocess --shard, or the number of shards if none has begun");
  ShardSet set{.count = count.value_or(there.empty() ? 0 : there.front().shard.count)};
  for (const Found& found : there) {
    const Shard& shard = found.shard;
    if (shard.count != set.count || shard.index >= shard.count)
      fail(ErrorKind::kData, prefix, shard.suffix(), ": is not one of ", set.count,
           " shards; remove those of the other run, or give its datasets another folder");
    if (auto record = record_of(prefix, found))
      set.complete.emplace(shard.index, std::move(*record));
    else if (auto failure = read_failure(prefix + shard.suffix()))
      set.failed.emplace(shard.index, std::move(*failure));
  }
  check_together(prefix, set);
  for (int64_t index = 0; index < set.count; ++index)
    if (!set.complete.contains(index) && !set.failed.contains(index)) set.missing.push_back(index);
  return set;
}

}  // namespace megalith
