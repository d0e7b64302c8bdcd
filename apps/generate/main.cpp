#include <algorithm>
#include <array>

#include "apps/app.h"
#include "apps/generate/mindformers.h"
#include "apps/manual_notes.h"
#include "apps/one_process.h"
#include "libcore/base/log.h"
#include "libcore/dialects/mindformers/run_file.h"
#include "libcore/generate/run_generate.h"

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

}  // namespace
}  // namespace megalith

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("generate", [&] {
    GenerateConfig config;
    MindFormersOptions mindformers;
    Options options("generate", "Continue texts with a trained model.");
    options.add("Model", config.model)
        .add("Prompts", config.prompt)
        .add("Sampling", config.sampling)
        .add("Beams", config.beams)
        .add("Ending", config.end)
        .add("Output", config.output)
        .add("Running", config.run)
        .add("MindFormers", mindformers)
        .translate(translate_mindformers)
        .derive([&] { mindformers.apply(config, options); })
        .derive([&] {
          if (config.prompt.conversation() && !options.given("max-new-tokens"))
            config.sampling.max_new_tokens = SampleOptions::kAnswerTokens;
        });
    options
        .epilog(
            "megalith-generate --model hf --prompt 'def hello_world():' --temperature 0\n"
            "megalith-generate --model hf --prompts-file prompts.jsonl --json\n"
            "echo 'Once upon a time' | megalith-generate --model checkpoint\n"
            "megalith-generate --model hf --chat --temperature 0.8\n")
        .environment(thread_variables())
        .environment(tokenizer_variables());
    options.rule([&](Problems& problems) {
      check_beams(config, problems);
      if (config.prompt.sequences > 1 && config.sampling.temperature == 0 && config.beams.beams == 1)
        problems.add(Opt{"num-return-sequences"}, ' ', config.prompt.sequences, " would all be the same at ",
                     Opt{"temperature"}, " 0; give a higher temperature, such as 1");
    });
    if (!parse_options(options, argc, argv)) return 0;
    require_one_process("generate");
    if (progress_visible() && sampling_is_default(options, mindformers))
      log("greedy: each token is the likeliest one; --temperature 0.8 draws it");
    warn_of_no_effect(options, config);
    run_generate(config);
    return 0;
  });
}
