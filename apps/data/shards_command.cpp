#include "apps/data/shards_command.h"

#include <iostream>

#include "libcore/base/error.h"

namespace megalith {

int run_shards_command(const ShardsCommand& command, bool as_json) {
  if (command.plan.empty() == command.missing.empty())
    fail(ErrorKind::kUsage, "shards: wanted either --plan FILES --shards N, or --missing PREFIX");
  if (command.plan.empty() && (command.by != ShardBy::kBytes || command.text != TextUnit::kNone || as_json))
    fail(ErrorKind::kUsage, "shards: --shard-by, --text and --json belong to --plan, not to --missing");
  if (command.missing.empty() && command.format != MissingFormat::kSlurm)
    fail(ErrorKind::kUsage, "shards: --format belongs to --missing, not to --plan");
  if (!command.missing.empty())
    return print_missing(find_shards(command.missing, command.shards), command.format, std::cout);
  if (!command.shards) fail(ErrorKind::kUsage, "shards: --plan needs --shards, their number");
  const std::vector<PlannedFile> files = planned_files(command.plan, command.text);
  print_plan(ShardPlan(files, command.text, *command.shards, command.by), files, as_json, std::cout);
  return 0;
}

}  // namespace megalith
