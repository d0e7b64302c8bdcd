#include <utility>

#include "apps/app.h"
#include "apps/training_app.h"
#include "libcore/finetune/finetune.h"

namespace megalith {
namespace {

int run_tuning(int argc, char** argv) {
  FinetuneConfig config;
  TrainingApp app(argc, argv);
  Options options("finetune", "Tune a GPT or LLaMA model on questions and answers: all parameters, or LoRA.");
  config.add_to(options);
  if (!app.read(options)) return 0;
  app.plan(config.run.parallel);
  options.check();
  return app.run(options, "finetune", !config.run.checkpoint.save.empty(),
                 [&](const StopSignal& stop, const std::optional<LaunchedRank>& rank) {
                   return finetune(std::move(config), stop, rank);
                 });
}

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  return megalith::run_app("finetune", [&] { return megalith::run_tuning(argc, argv); });
}
