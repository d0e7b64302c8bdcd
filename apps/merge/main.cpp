#include <utility>
#include <vector>

#include "apps/app.h"
#include "libcore/base/log.h"
#include "libcore/data/merge/merge_shards.h"
#include "libcore/dialects/megatron/fates.h"
#include "libcore/io/run/run_files.h"
#include "libcore/options/cli.h"

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("merge", [&] {
    MergeConfig config;
    Options options("merge", "Join indexed datasets into one.");
    options.add("Input and output", config)
        .fates([] { return fates_in(kMerge); })
        .epilog(
            "megalith-merge --input datasets/ --output-prefix all_text_document\n"
            "megalith-merge --shards out/corpus --output-prefix corpus\n")
        .files(
            {{"PREFIX.bin, PREFIX.idx, PREFIX.json", "A dataset, and what made it; see megalith-data(1)."}});
    set_log_console(LogConsole::kStdout);  // to stdout, like upstream's log, for `| tee log`
    constexpr int kFirst = 1;              // --input takes several words
    const std::vector<const char*> words = with_named_file(argc, argv, kFirst);
    if (!parse_options(options, static_cast<int>(words.size()), words.data())) return 0;
    RunFiles files;
    files.reads("--config", options.config_file());
    if (!config.shards.empty()) {
      merge_shards(config, std::move(files));
      return 0;
    }
    files.writes_dataset("--output-prefix", config.output_prefix);
    files.check();
    merge_datasets(config);
    return 0;
  });
}
