#include "apps/app.h"
#include "libcore/config/cli.h"
#include "libcore/convert/convert.h"

int main(int argc, char** argv) {
  using namespace megalith;
  return run_app("convert", [&] {
    ConvertConfig config;
    Options options("convert", "Turn a checkpoint into a Hugging Face folder, or the reverse.");
    options.add("Conversion", config);
    options.epilog(
        "megalith-convert checkpoints --output codeparrot-small\n"
        "megalith-convert codeparrot-small --to megalith --output weights\n");
    if (!parse_options(options, argc, argv)) return 0;
    run_convert(config);
    return 0;
  });
}
