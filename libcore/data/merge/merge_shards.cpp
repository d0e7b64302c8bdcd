#include "libcore/data/merge/merge_shards.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/shell_word.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/data/indexed/content.h"
#include "libcore/data/shards/shard_set.h"
#include "libcore/io/files/file.h"
#include "libcore/io/run/held_output.h"

namespace megalith {
namespace {

/// Throws kData unless all shards are complete.
void require_all(const MergeConfig& config, const ShardSet& set) {
  std::vector<int64_t> lacking = set.missing;
  for (const auto& [index, failure] : set.failed) lacking.push_back(index);
  std::sort(lacking.begin(), lacking.end());
  if (lacking.empty()) return;
  const std::string reason = set.failed.empty() ? ""
                                                : concat("; shard ", set.failed.begin()->first,
                                                         " failed: ", set.failed.begin()->second.reason);
  fail(ErrorKind::kData, config.shards, ": ", lacking.size(), " of ", set.count,
       " shards are missing: ", ranges_text(lacking), reason,
       "; do them first (megalith-data shards --missing ", shell_word(config.shards), ")");
}

std::string shard_prefix(const std::string& prefix, const ShardRecord& record) {
  return prefix + Shard{record.index, record.count}.suffix();
}

/// The options for joining one dataset of all shards.
MergeConfig config_of(const MergeConfig& config, const ShardSet& set, const std::string& dataset) {
  MergeConfig one = config;
  one.output_prefix += "_" + dataset;
  one.sidecars_needed = true;
  one.inputs.clear();
  for (const auto& [index, record] : set.complete)
    one.inputs.push_back(shard_prefix(config.shards, record) + "_" + dataset);
  return one;
}

/// Joins the shards' rejected lines. They are compared with what the sidecars say of them.
class RejectedLines {
 public:
  RejectedLines(const MergeConfig& config, const ShardSet& set) : config_(config), set_(set) {}

  void add_to(RunFiles& files) const {
    for (const auto& [index, record] : set_.complete) files.reads("--rejects", path_of(record));
    files.writes("--rejects", config_.rejects);
  }

  void join() const {
    const HeldOutput held(config_.rejects);
    AtomicFile out(config_.rejects);
    int64_t lines = 0;
    for (const auto& [index, record] : set_.complete) lines += append(record, out);
    out.commit();
    log("Joined ", format_count(lines), " rejected lines into ", printable(config_.rejects));
  }

 private:
  std::string path_of(const ShardRecord& record) const { return shard_prefix(config_.rejects, record); }

  int64_t append(const ShardRecord& record, AtomicFile& out) const {
    if (!record.rejects)
      fail(ErrorKind::kUsage, "--rejects ", config_.rejects,
           ": the shards were made without --rejects; leave it out");
    const ReadableFile in(path_of(record));
    const std::vector<ContentPart> whole = {record.rejects->content};
    ContentChecker checker(in.path(), whole, in.size());
    in.stream([&](std::span<const std::byte> block) {
      checker.update(block.data(), block.size());
      out.write(block.data(), block.size());
    });
    return record.rejects->lines;
  }

  const MergeConfig& config_;
  const ShardSet& set_;
};

}  // namespace

void merge_shards(const MergeConfig& config, RunFiles files) {
  const ShardSet set = find_shards(config.shards);
  require_all(config, set);
  std::vector<MergeConfig> datasets;
  for (const std::string& dataset : set.complete.begin()->second.datasets)
    datasets.push_back(config_of(config, set, dataset));
  for (const MergeConfig& dataset : datasets) files.writes_dataset("--output-prefix", dataset.output_prefix);
  const RejectedLines rejects(config, set);
  if (!config.rejects.empty()) rejects.add_to(files);
  files.check();
  if (!config.rejects.empty()) rejects.join();
  for (const MergeConfig& dataset : datasets) merge_datasets(dataset);
}

}  // namespace megalith
