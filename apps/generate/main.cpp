#include <algorithm>
#include <array>

#include "apps/app.h"
#include "apps/generate/mindformers.h"
#include "apps/manual_notes.h"
#include "apps/ranks_app.h"
#include "libcore/base/log.h"
#include "libcore/dialects/mindformers/run_file.h"
#include "libcore/generate/ranks/ranked_run.h"
#include "libcore/generate/run_generate.h"
#include "libcore/ops/backend/cuda_plugin.h"

namespace megalith {
namespace {

/// Whether no option says how tokens are chosen.
bool sampling_is_default(const Options& options, const MindFormersOptions& mindformers) {
  constexpr std::array kSampling = {
      "num-beams",          "temperature",          "top-k", "top-p", "min-p", "typical-p",
      "repetition-penalty", "no-repeat-ngram-size", "seed"};
  return !mindformers.do_sample && std::none_of(kSampling.begin(), kSampling.end(),
                                                [&](const char* option) { return options.given(option); });
}

/// Warns of options that choose tokens in another way than this run does.
void warn_of_no_effect(const Options& options, const GenerateConfig& config) {
  const bool searches = config.beams.beams > 1;
  for (const char* option : {"length-penalty", "early-stopping"})
    if (!searches && options.given(option)) warn("--", option, ": no effect without --num-beams above 1");
  if (config.sampling.temperature > 0) return;
  std::string given;
  for (const char* option : {"top-k", "top-p", "min-p", "typical-p"})
    if (options.given(option)) given += concat(given.empty() ? "--" : ", --", option);
  if (!given.empty())
    warn(given, searches ? ": no effect with --num-beams, which draws no tokens"
                         : ": no effect, as nothing is sampled at --temperature 0 (the default); give "
                           "--temperature 1 to draw tokens");
}

void check_beams(const GenerateConfig& config, Problems& problems) {
  const int beams = config.beams.beams;
  if (beams == 1) return;
  if (config.sampling.temperature > 0)
    problems.add(Opt{"num-beams"}, ' ', beams, " and ", Opt{"temperature"},
                 " contradict each other: beams are the likeliest texts; leave out one of them");
  if (config.prompt.sequences > beams)
    problems.add(Opt{"num-return-sequences"}, ' ', config.prompt.sequences, " is more than ",
                 Opt{"num-beams"}, ' ', beams);
  if (config.prompt.conversation())
    problems.add(Opt{"num-beams"}, ' ', beams, ": a conversation shows tokens as they are chosen; give ",
                 Opt{"chat"}, " a file");
}

constexpr WithdrawnOption kNotOfGeneration[] = {
    {"restarts", "start the command again: there are no checkpoints to resume from"}};

/// One command of megalith-generate.
class Generation {
 public:
  Generation(int argc, char** argv)
      : app_(argc, argv), options_("generate", "Continue texts with a trained model.") {
    options_.add("Model", config_.model)
        .add("Prompts", config_.prompt)
        .add("Sampling", config_.sampling)
        .add("Beams", config_.beams)
        .add("Ending", config_.end)
        .add("Output", config_.output)
        .add("Running", config_.run)
        .add("Parallelism", parallel_)
        .withdraw(only_for_training_ranks())
        .add("MindFormers", mindformers_)
        .translate(translate_mindformers)
        .derive([this] { mindformers_.apply(config_, options_); })
        .derive([this] {
          if (config_.prompt.conversation() && !options_.given("max-new-tokens"))
            config_.sampling.max_new_tokens = SampleOptions::kAnswerTokens;
        });
    options_.epilog(
        "megalith-generate --model hf --prompt 'def hello_world():' --temperature 0\n"
        "megalith-generate --model hf --prompts-file prompts.jsonl --json\n"
        "echo 'Once upon a time' | megalith-generate --model checkpoint\n"
        "megalith-generate --model hf --chat --temperature 0.8\n"
        "megalith-generate --model hf -p 'The ' --nproc 2 --tensor-model-parallel-size 2\n"
        "torchrun --no-python --nproc_per_node 2 megalith-generate ...\n");
    options_.rule([this](Problems& problems) { check(problems); });
  }

  int run() {
    if (!app_.read(options_, kNotOfGeneration)) return 0;
    app_.plan(parallel_);
    options_.check();
    app_.files(options_).check();
    if (progress_visible() && sampling_is_default(options_, mindformers_))
      log("greedy: each token is the likeliest one; --temperature 0.8 draws it");
    warn_of_no_effect(options_, config_);
    if (app_.starts_ranks()) return app_.start_ranks(StopSignal());
    if (parallel_.world > 1) config_.run.device = resolved_device(config_.run.device);
    const RanksApp::Entered entered = app_.enter(options_, config_.run.device);
    if (parallel_.world > 1)
      generate_in_ranks(config_, parallel_, entered.rank, entered.thread_log);
    else
      run_generate(config_);
    check_log_files();
    return 0;
  }

 private:
  void check(Problems& problems) const {
    check_beams(config_, problems);
    if (config_.prompt.sequences > 1 && config_.sampling.temperature == 0 && config_.beams.beams == 1)
      problems.add(Opt{"num-return-sequences"}, ' ', config_.prompt.sequences, " would all be the same at ",
                   Opt{"temperature"}, " 0; give a higher temperature, such as 1");
    check_ranked(config_, parallel_, problems);
  }

  RanksApp app_;
  Options options_;
  GenerateConfig config_;
  ParallelConfig parallel_;
  MindFormersOptions mindformers_;
};

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  return megalith::run_app("generate", [&] { return megalith::Generation(argc, argv).run(); });
}
