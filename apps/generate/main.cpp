#include "apps/app.h"
#include "apps/generate/run_generate.h"

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("generate", [&] {
    GenerateConfig config;
    SampleOptions sampling;
    Options options("generate", "Continue a text with a trained model.");
    options.add("Input", config).add("Sampling", sampling);
    if (!parse_options(options, argc, argv)) return 0;
    run_generate(config, sampling);
    return 0;
  });
}
