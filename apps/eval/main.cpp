#include "apps/app.h"
#include "apps/manual_notes.h"
#include "apps/one_process.h"
#include "libcore/evaluate/run_evaluate.h"

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("eval", [&] {
    EvaluateConfig config;
    Options options("eval", "Evaluate a trained model on files of tasks, by lm-evaluation-harness' rules.");
    options.add("Model", config.model)
        .add("Tasks", config.task)
        .add("Results", config.result)
        .add("Running", config.run)
        .epilog(
            "megalith-eval --model hf --tasks hellaswag=hellaswag_val.jsonl,piqa=valid.jsonl\n"
            "megalith-eval --model hf --tasks arc_easy=ARC-Easy-Test.jsonl --num-fewshot 5 \\\n"
            "  --fewshot-data arc_easy=ARC-Easy-Train.jsonl --json results.json\n"
            "megalith-eval --model checkpoint --tasks questions.jsonl --samples samples.jsonl\n")
        .files({{"NAME-labels.lst",
                 "The labels of PIQA's NAME.jsonl, one a line, if they are not in its items."}})
        .environment(thread_variables())
        .environment(tokenizer_variables());
    if (!parse_options(options, argc, argv)) return 0;
    require_one_process("eval");
    run_evaluate(config);
    return 0;
  });
}
