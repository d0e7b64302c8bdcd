#include <string>

#include "apps/app.h"
#include "libcore/options/cli.h"
#include "libcore/train/log/live_view.h"

namespace megalith {
namespace {

struct TopConfig {
  std::string run;

  template <class V>
  void fields(V&& v) {
    v("run", run, "The file of figures that --log-json or --report writes.", positional(), required(),
      metavar("RUN.jsonl"));
  }
};

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("top", [&] {
    TopConfig config;
    Options options("top", "Show a training run in the terminal while it runs.");
    options.add("Run", config)
        .epilog(
            "megalith-top run.jsonl\n"
            "\n"
            "It ends when the run ends, or at Ctrl-C. Without a terminal it prints one\n"
            "picture.\n")
        .files({{"RUN.jsonl", "The figures of a run, one step a line."}});
    if (!parse_options(options, argc, argv)) return 0;
    watch_run(config.run);
    return 0;
  });
}
