#include "apps/app.h"
#include "libcore/config/cli.h"
#include "libcore/data/preprocess.h"

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("preprocess", [&] {
    PreprocessConfig config;
    TokenizerConfig tokenizer;
    Options options("preprocess", "Turn loose JSON into indexed datasets of token ids.");
    options.add("Input and output", config).add("Tokenizer", tokenizer);
    if (!parse_options(options, argc, argv)) return 0;
    return run_preprocess(config, tokenizer);
  });
}
