#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libcore/generate/device_options.h"

namespace megalith {

/// Options of megalith-eval, a struct for each group of --help.
struct EvaluatedModelOptions {
  std::string model, adapter;

  template <class V>
  void fields(V&& v) {
    v("model", model,
      "What to evaluate: a folder that training saved into, one of its iterations, a Hugging Face folder, or "
      "the id of a model that was downloaded from its hub before.",
      required(), metavar("DIR"), alias({"load"}));
    v("adapter", adapter, "PEFT adapter to run the model with: LoRA or prefix tuning.", metavar("DIR"));
  }
};

/// What a program calls the options of TaskOptions.
struct TaskOptionNames {
  std::string_view tasks = "tasks", fewshots = "num-fewshot", fewshot_data = "fewshot-data";
};

struct TaskOptions {
  std::vector<std::string> tasks = {}, fewshot_data = {};
  int fewshots = 0;
  int64_t limit = 0, seed = 1234;
  TaskOptionNames names = {};

  template <class V>
  void fields(V&& v) {
    v("tasks", tasks,
      "Tasks, with commas between: NAME=FILE for a published form (hellaswag, arc_easy, arc_challenge, piqa, "
      "lambada), or FILE.jsonl with \"context\", \"choices\" and \"answer\", or with \"text\", in each line.",
      required(), metavar("TASKS"));
    v("num-fewshot", fewshots, "Answered examples before each item.", at_least(0));
    v("fewshot-data", fewshot_data,
      "Where examples are drawn from, NAME=FILE with commas between; a task that is not named draws from its "
      "own other items.",
      metavar("TASKS"));
    v("limit", limit, "Evaluate only the first items of each task; 0: all.", at_least(0));
    v("seed", seed, "The seed with which examples are drawn.", at_least(0));
  }
  void validate(Problems&) const;
};

struct ResultOptions {
  std::string json, samples;

  template <class V>
  void fields(V&& v) {
    v("json", json, "Write the results as JSON, with the keys of lm-evaluation-harness' results.",
      metavar("FILE"));
    v("samples", samples,
      "Write a JSON object a line for each item: context, continuations, log-likelihoods, acc.",
      metavar("FILE"));
  }
};

struct EvaluationRunOptions : DeviceOptions {
  int64_t batch = 0, max_length = 0;
  bool bf16 = false;

  template <class V>
  void fields(V&& v) {
    v("batch-size", batch,
      "Maximum number of texts in a pass of the model, which has at most 1024 tokens; auto: as many as fit.",
      at_least(1), word_value("auto", 0), default_text("auto"));
    v("max-length", max_length, "Positions of the model that are used; 0: all.", at_least(0));
    v("bf16", bf16, "Compute in bf16, with weights in bf16.");
    DeviceOptions::fields(v);
  }
};

struct EvaluateConfig {
  EvaluatedModelOptions model;
  TaskOptions task;
  ResultOptions result;
  EvaluationRunOptions run;
};

}  // namespace megalith
