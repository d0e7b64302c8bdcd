#include "apps/app.h"
#include "apps/generate/run_generate.h"

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("generate", [&] {
    GenerateConfig config;
    Options options("generate", "Continue texts with a trained model.");
    options.add("Model", config.model)
        .add("Prompts", config.prompt)
        .add("Sampling", config.sampling)
        .add("Ending", config.end)
        .add("Output", config.output)
        .add("Running", config.run);
    if (!parse_options(options, argc, argv)) return 0;
    run_generate(config);
    return 0;
  });
}
