#include "libcore/evaluate/run_evaluate.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/convert/sources/model_files.h"
#include "libcore/evaluate/evaluation_report.h"
#include "libcore/evaluate/likelihoods.h"
#include "libcore/generate/loaded_model.h"
#include "libcore/generate/sources/model_tokenizer.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/standard_streams.h"

namespace megalith {
namespace {

void check_files(const EvaluateConfig& config, const std::vector<TaskSpec>& specs) {
  RunFiles files;
  reads_model(files, "--model", config.model.model);
  files.reads("--adapter", config.model.adapter);
  for (const TaskSpec& spec : specs) {
    files.reads("--tasks", spec.path);
    files.reads("--fewshot-data", spec.examples);
  }
  files.writes("--json", config.result.json, OutputKind::kStream);
  files.writes("--samples", config.result.samples, OutputKind::kStream);
  files.check();
}

/// An output that is written when all is done; opened before, so that a run does not fail at its end.
std::optional<AtomicFile> open_result(const std::string& path) {
  if (path.empty()) return std::nullopt;
  return std::optional<AtomicFile>(std::in_place, path, OutputKind::kStream);
}

/// The positions for a text: those of --max-length, else all that the model leaves.
int64_t text_length(const EvaluateConfig& config, LoadedModel& model) {
  const Stage& stage = model.stage();
  const char* const device = model.stream().backend().name();
  const std::optional<LastPosition> last = last_position(stage.config(), stage.dtype(), device);
  const int64_t prefix = positions_of(model.prefix()), wanted = config.run.max_length;
  if (last && wanted + prefix > last->positions)
    fail(ErrorKind::kUsage, "--max-length ", wanted, ": ", last->words,
         prefix > 0 ? concat(", of which the prefix takes ", prefix) : std::string(), "; give less");
  return wanted > 0 ? wanted
                    : positions_of_a_text(stage.config(), stage.dtype(), device) - (last ? prefix : 0);
}

/// Reads all texts and shows how far that is.
std::vector<Likelihood> read_all(LikelihoodReader& reader, std::span<const ScoredTokens> texts) {
  std::optional<Progress> progress;
  return reader.read(texts, [&](int64_t done, int64_t all) {
    if (!progress) progress.emplace("evaluating", all, "tokens");
    progress->advance_to(done);
  });
}

void write_results(std::span<const TaskRun> tasks, const EvaluateConfig& config,
                   std::optional<AtomicFile>& json, std::optional<AtomicFile>& samples) {
  std::vector<TaskResult> results;
  for (const TaskRun& task : tasks) results.push_back({&task, task.metrics()});
  if (json) {
    json->write(results_json(results, config).dump(2) + "\n");
    json->commit();
  }
  if (samples) {
    for (const TaskRun& task : tasks)
      for (size_t i = 0; i < task.items().size(); ++i) samples->write(sample_json(task, i).dump() + "\n");
    samples->commit();
  }
  write_stdout(results_table(results));
  flush_stdout();
}

void report(const std::vector<ScoredTokens>& texts, int64_t read, double seconds) {
  int64_t alone = 0;
  for (const ScoredTokens& text : texts) alone += static_cast<int64_t>(text.tokens.size()) - 1;
  log("texts: ", format_count(static_cast<int64_t>(texts.size())), " of ", format_count(alone),
      " tokens; read ", format_count(read), ", shared beginnings once, in ", format_fixed(seconds, 2), " s (",
      format_count(static_cast<int64_t>(static_cast<double>(read) / std::max(seconds, 1e-9))),
      " tokens/s); memory ", format_bytes(static_cast<double>(peak_memory())), " at most");
}

}  // namespace

void run_evaluate(const EvaluateConfig& config) {
  Problems problems;
  const std::vector<TaskSpec> specs = task_specs(config.task, problems);
  problems.throw_if_any();
  check_files(config, specs);
  std::optional<AtomicFile> json = open_result(config.result.json),
                            samples = open_result(config.result.samples);
  std::vector<TaskRun> tasks = read_tasks(specs, config.task);

  set_cpu_threads(config.run.threads);
  show_status(concat("loading ", config.model.model, " ..."));
  const ModelSource source(config.model.model);
  const std::unique_ptr<Tokenizer> tokenizer = model_tokenizer(source, true);
  uint64_t bytes = 0;
  for (const TaskRun& task : tasks) bytes += task.bytes();
  tokenizer->expect(bytes);
  LoadedModel model(source, {.adapter = config.model.adapter,
                             .device = config.run.device,
                             .bf16 = config.run.bf16,
                             .length = config.run.max_length});
  const int64_t length = text_length(config, model);
  PairEncoder encoder(*tokenizer, generation_files(source, *tokenizer), length);
  show_status("encoding the tasks' texts ...");
  const std::vector<ScoredTokens> texts =
      encode_tasks(tasks, encoder, source.config().vocab_size, source.path() + ": its tokenizer");
  if (encoder.cut() > 0)
    warn(format_count(encoder.cut()), " of ", format_count(static_cast<int64_t>(texts.size())),
         " texts have more tokens than the ", length,
         " positions that are used; their beginnings are left out");

  LikelihoodReader reader(model.stage(), model.stream(),
                          {.texts = config.run.batch, .prefix = model.prefix()});
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Likelihood> likelihoods = read_all(reader, texts);
  report(texts, reader.tokens_read(), seconds_since(start));
  std::span<const Likelihood> left = likelihoods;
  for (TaskRun& task : tasks) left = task.take(left);
  write_results(tasks, config, json, samples);
}

}  // namespace megalith
