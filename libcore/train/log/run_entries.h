#pragma once

#include <cstdint>
#include <string>

#include "libcore/json/json.h"
#include "libcore/json/json_fields.h"

/// The entries of a run's file of figures: one JSON object a line. RunLog (train/log/metrics.h) writes them,
/// and the report reads them.
namespace megalith {

/// An entry's type, the value of "type".
inline constexpr const char *kStartEntry = "start", *kStepEntry = "train", *kValidEntry = "valid",
                            *kTestEntry = "test", *kTasksEntry = "tasks", *kSampleEntry = "sample",
                            *kSaveEntry = "save", *kEndEntry = "end";

/// The members with which each entry begins.
struct EntryHead {
  std::string type = {};
  double time = 0;  // seconds since 1970
  template <class V>
  void fields(V&& v) {  // see json/json_fields.h
    v("type", type);
    v("time", IfPresent<double>{time});
  }
};

/// What each entry but a start entry must have, also one whose type this version does not know.
struct EntryPlace {
  int64_t iteration = 0;
  template <class V>
  void fields(V&& v) {
    v("iteration", iteration);
  }
};

/// Begins each run, also one that resumes.
struct StartEntry {
  int64_t iteration = 0;   // steps done by earlier runs
  int64_t iterations = 0;  // of the whole run
  int64_t parameters = 0, memory_bytes = 0;
  Json args = {};            // every option of the run
  std::string command = {};  // what began it, as a shell reads it
  template <class V>
  void fields(V&& v) {
    v("iteration", IfPresent<int64_t>{iteration});
    v("iterations", IfPresent<int64_t>{iterations});
    v("parameters", IfPresent<int64_t>{parameters});
    v("memory_bytes", IfPresent<int64_t>{memory_bytes});
    v("args", IfPresent<Json>{args});
    v("command", IfPresent<std::string>{command});
  }
};

/// One optimizer step. The units are those of StepFigures; of tokens, `tokens` counts those of all steps so
/// far.
struct StepEntry {
  int64_t iteration = 0, consumed_samples = 0, tokens = 0;
  double loss = 0, lr = 0, grad_norm = 0, loss_scale = 1;
  double ms = 0, tokens_per_s = 0, tflops = 0;
  int64_t memory_bytes = 0, batch = 0;
  bool skipped = false;
  template <class V>
  void fields(V&& v) {
    v("iteration", iteration);
    v("consumed_samples", IfPresent<int64_t>{consumed_samples});
    v("tokens", IfPresent<int64_t>{tokens});
    v("loss", Figure{loss});
    v("lr", Figure{lr});
    v("grad_norm", Figure{grad_norm});
    v("loss_scale", Figure{loss_scale});
    v("ms", Figure{ms});
    v("tokens_per_s", Figure{tokens_per_s});
    v("tflops", Figure{tflops});
    v("memory_bytes", IfPresent<int64_t>{memory_bytes});
    v("batch", IfPresent<int64_t>{batch});
    v("skipped", IfPresent<bool>{skipped});
  }
};

/// An evaluation on the validation or the test set.
struct EvaluationEntry {
  int64_t iteration = 0;
  std::optional<std::string> set = {};  // of several validation sets, see EvaluationReport
  double loss = 0, ppl = 0;
  std::optional<double> accuracy = {};  // of labels, with megalith-finetune --metric-for-best-model accuracy
  template <class V>
  void fields(V&& v) {
    v("iteration", iteration);
    v("set", set);
    v("loss", Figure{loss});
    v("ppl", Figure{ppl});
    v("accuracy", accuracy);
  }
};

/// The figures of --eval-tasks: an object for each task, with "acc" and "acc_stderr".
struct TasksEntry {
  int64_t iteration = 0;
  double seconds = 0;
  Json results = {};
  template <class V>
  void fields(V&& v) {
    v("iteration", iteration);
    v("seconds", IfPresent<double>{seconds});
    v("results", results);
  }
};

struct SampleEntry {
  int64_t iteration = 0;
  std::string prompt = {}, text = {};
  template <class V>
  void fields(V&& v) {
    v("iteration", iteration);
    v("prompt", prompt);
    v("text", text);
  }
};

/// A checkpoint is complete.
struct SaveEntry {
  int64_t iteration = 0;
  std::string path = {};
  template <class V>
  void fields(V&& v) {
    v("iteration", iteration);
    v("path", path);
  }
};

struct EndEntry {
  int64_t iteration = 0;
  std::string reason = {};
  template <class V>
  void fields(V&& v) {
    v("iteration", iteration);
    v("reason", reason);
  }
};

}  // namespace megalith
