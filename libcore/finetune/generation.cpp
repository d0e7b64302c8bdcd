#include "libcore/finetune/generation.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/finetune/record_files.h"
#include "libcore/generate/loaded_model.h"
#include "libcore/io/file.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

constexpr int64_t kMaxTokens = 128;  // of an answer, where nothing says how many

int64_t most_tokens(const FinetuneConfig& config) {
  if (config.generation.most_tokens > 0) return config.generation.most_tokens;
  return config.data.target_length > 0 ? config.data.target_length : kMaxTokens;
}

/// The answers' texts; empty when the run was asked to end.
std::vector<std::string> answers_of(LoadedModel& model, const RecordFiles& records,
                                    std::vector<std::vector<int32_t>> prompts, int64_t most,
                                    const StopSignal& stop) {
  Generator generator(model.stage(), model.stream(), {.batch = Project::kFewRows, .prefix = model.prefix()});
  Progress progress("answering", static_cast<int64_t>(prompts.size()), "prompts");
  int64_t done = 0;
  const std::vector<Generated> made =
      generator.run({.prompts = prompts,
                     .sampling = {.max_new_tokens = static_cast<int>(most), .temperature = 0},
                     .stop_tokens = records.ends(),
                     .on_token = [&](size_t, int32_t) { return !stop.asked(); },
                     .on_end = [&](size_t, const Generated&) { progress.advance_to(++done); }});
  if (stop.asked()) return {};
  std::vector<std::string> texts;
  for (const Generated& one : made) texts.push_back(records.tokenizer().decode(one.tokens));
  return texts;
}

Json results_json(const TextScores& scores, const TunedModel& tuned) {
  return Json(Json::Object{{"model", tuned.model},
                           {"adapter", tuned.adapter},
                           {"predict_records", scores.texts},
                           {"predict_bleu", scores.bleu},
                           {"predict_rouge_l", scores.rouge_l},
                           {"predict_exact_match", scores.exact_match}});
}

}  // namespace

void generate_answers(const FinetuneConfig& config, const TunedModel& tuned, const StopSignal& stop) {
  const ModelSource source(tuned.model);
  TokenizerConfig tokenizer = config.run.tokenizer;
  const RecordFiles records(config.data, source, tokenizer_of(tokenizer, source), config.run.train.seed);
  const int64_t positions = source.config().usable_positions() - config.method.positions_before();
  const int64_t most = std::min(most_tokens(config), positions / 2);
  const std::vector<Question> questions =
      records.questions(data_files(config.data).dev,
                        {.source = config.data.source_length, .target = 0, .whole = positions - most},
                        config.preference.wanted);
  LoadedModel model(source, {.adapter = tuned.adapter});
  std::vector<std::vector<int32_t>> prompts;
  for (const Question& question : questions) prompts.push_back(question.ids);
  const std::vector<std::string> texts = answers_of(model, records, std::move(prompts), most, stop);
  if (texts.empty()) return;

  TextScorer scorer;
  std::string lines;
  for (size_t i = 0; i < texts.size(); ++i) {
    scorer.add(texts[i], questions[i].answer);
    lines += Json(Json::Object{
                      {"prompt", questions[i].prompt}, {"predict", texts[i]}, {"label", questions[i].answer}})
                 .dump() +
             "\n";
  }
  const TextScores scores = scorer.scores();
  const std::string& output = config.run.checkpoint.save;
  write_file(output + "/generated_predictions.jsonl", lines);
  write_file(output + "/predict_results.json", results_json(scores, tuned).dump(2) + "\n");
  log("answers: ", format_count(scores.texts), " records | BLEU: ", format_fixed(scores.bleu, 2),
      " | ROUGE-L: ", format_fixed(scores.rouge_l, 2),
      " | exact match: ", format_fixed(scores.exact_match, 2), " % | ", output,
      "/generated_predictions.jsonl");
}

}  // namespace megalith
