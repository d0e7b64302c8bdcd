#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/data/preprocess/corpus_files.h"
#include "libcore/data/preprocess/shard_report.h"
#include "libcore/options/fields.h"

namespace megalith {

inline std::vector<EnumName<MissingFormat>> enum_names(MissingFormat) {
  return {{"slurm", MissingFormat::kSlurm}, {"lines", MissingFormat::kLines}};
}

/// Options of `megalith-data shards`.
struct ShardsCommand {
  std::vector<std::string> plan;
  std::string missing;
  std::optional<int64_t> shards;
  ShardBy by = ShardBy::kBytes;
  TextUnit text = TextUnit::kNone;
  MissingFormat format = MissingFormat::kSlurm;

  template <class V>
  void fields(V&& v) {
    v("plan", plan, "Print what each shard reads of these inputs, the --input of megalith-preprocess.",
      metavar("FILE"));
    v("missing", missing,
      "Print the numbers of the shards that are not complete; the prefix is the --output-prefix of "
      "megalith-preprocess. Failed shards, which another attempt would not help, are named on stderr "
      "instead. Exit code: 0 if all are complete, 75 if numbers are printed, 65 if only failed shards are "
      "left.",
      metavar("PREFIX"));
    v("shards", shards, "The number of shards.", between(1, static_cast<double>(kMaxShards)),
      default_text("of --missing: what the names say"));
    v("shard-by", by, kShardByHelp);
    v("text", text, kTextHelp);
    v("format", format, "Of --missing: slurm (1-2,5-10, for sbatch --array) or lines (one a line).");
  }
  bool given() const {
    return !plan.empty() || !missing.empty() || shards || by != ShardBy::kBytes || text != TextUnit::kNone ||
           format != MissingFormat::kSlurm;
  }
};

/// Does what the options ask; returns the exit code. kUsage unless one of --plan and --missing is given, and
/// for an option of the other one.
int run_shards_command(const ShardsCommand& command, bool as_json);

}  // namespace megalith
