#include "apps/app.h"
#include "libcore/base/log.h"
#include "libcore/config/cli.h"
#include "libcore/data/preprocess/preprocess.h"

namespace {

/// Of old scripts: workers share one input without temporary files, and the order is always kept.
constexpr megalith::IgnoredOption kAccepted[] = {
    {"partitions", megalith::IgnoredOption::kOne},
    {"keep-sequential-samples", megalith::IgnoredOption::kNone},
};

}  // namespace

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("preprocess", [&] {
    PreprocessConfig config;
    TokenizerConfig tokenizer;
    Options options("preprocess", "Turn loose JSON into indexed datasets of token ids.");
    options.add("Input and output", config).add("Tokenizer", tokenizer).ignore(kAccepted);
    set_log_console(LogConsole::kStdout);  // as upstream: `| tee log` captures it
    if (!parse_options(options, argc, argv)) return 0;
    return run_preprocess(config, tokenizer);
  });
}
