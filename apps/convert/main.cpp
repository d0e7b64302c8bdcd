#include <iostream>

#include "apps/app.h"
#include "apps/manual_notes.h"
#include "libcore/base/log.h"
#include "libcore/convert/convert.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/options/cli.h"

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("convert", [&] {
    ConvertConfig config;
    Options options("convert", "Turn a checkpoint of one kind into one of another.");
    options.add("Conversion", config);
    options
        .epilog(
            "megalith-convert checkpoints --output codeparrot-small\n"
            "megalith-convert codeparrot-small --to megatron --tp 2 --pp 2 --output mcore\n"
            "megalith-convert codeparrot-small --to gguf --dtype q8_0 \\\n"
            "  --output codeparrot.gguf\n"
            "megalith-convert inspect checkpoints\n")
        .environment(tokenizer_variables())
        .files({{"README.md, loss.svg",
                 "The model card of a Hugging Face folder, and the loss of its training."}});
    if (!parse_options(options, argc, argv)) return 0;
    config.options_file = options.config_file();
    try {
      std::cout << run_convert(config);
    } catch (const Stopped& stopped) {
      tell("convert: stopped by ", stopped.name, "; nothing was written");
      return 128 + stopped.signal;
    }
    return 0;
  });
}
