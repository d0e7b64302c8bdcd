#include "libcore/finetune/generation.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/generate/loaded_model.h"
#include "libcore/generate/text_stream.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

constexpr int64_t kMaxTokens = 128;  // default maximum number of tokens of an answer
constexpr int64_t kAtOnce = 8;       // answers; each needs the memory of its keys and values

/// The texts of the answers; empty if a stop was requested.
std::vector<std::string> answers_of(LoadedModel& model, const RecordFiles& records,
                                    std::vector<std::vector<int32_t>> prompts, int64_t most,
                                    const StopSignal& stop) {
  Generator generator(model.stage(), model.stream(), {.batch = kAtOnce, .prefix = model.prefix()});
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
  for (const Generated& one : made) texts.push_back(text_of_known(records.tokenizer(), one.tokens));
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

int64_t answer_length(const FinetuneConfig& config, int64_t positions) {
  if (const int64_t given = config.generation.max_tokens; given > 0) {
    if (given >= positions)
      fail(ErrorKind::kUsage, "--max-new-tokens ", given, " leaves no room for a prompt: the model has ",
           positions, " positions for both; give at most ", positions - 1);
    return given;
  }
  const int64_t target = config.data.target_length, wanted = target > 0 ? target : kMaxTokens;
  const int64_t most = std::min(wanted, positions / 2);
  if (most < wanted)
    warn("answers have at most ", most, " tokens, not the ", target > 0 ? "" : "usual ", wanted,
         target > 0 ? " of --tgt-length" : "", ": the model has ", positions,
         " positions, half of which are reserved for prompts; give --max-new-tokens for another limit");
  return most;
}

namespace {
int64_t longest_of(const std::vector<Question>& questions) {
  size_t longest = 0;
  for (const Question& question : questions) longest = std::max(longest, question.ids.size());
  return static_cast<int64_t>(longest);
}
}  // namespace

void generate_answers(const FinetuneConfig& config, const TuningSets& sets, const TunedModel& tuned,
                      const StopSignal& stop) {
  const ModelSource source(tuned.model);
  const RecordFiles& records = *sets.records;
  const int64_t most = sets.answer_tokens;
  const int64_t room = config.method.positions_left(source.config()) - most;
  const std::vector<Question> questions = records.questions(
      data_files(config.data, config.schedule.do_train).dev,
      {.source = config.data.source_length, .target = 0, .whole = room}, config.preference.wanted);
  const auto cut = std::count_if(questions.begin(), questions.end(),
                                 [](const Question& question) { return question.cut; });
  if (cut > 0)
    warn(cut, " of ", questions.size(), " prompts lost their beginning: ", room,
         " tokens are left for a prompt when an answer may have ", most, " (--max-new-tokens)");
  LoadedModel model(source, {.adapter = tuned.adapter, .length = longest_of(questions) + most});
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
  make_directories(output);
  // So that the scores of older answers never lie next to these answers.
  remove_file(output + "/predict_results.json");
  write_file(output + "/generated_predictions.jsonl", lines);
  write_file(output + "/predict_results.json", results_json(scores, tuned).dump(2) + "\n");
  log("answers: ", format_count(scores.texts), " records | BLEU: ", format_fixed(scores.bleu, 2),
      " | ROUGE-L: ", format_fixed(scores.rouge_l, 2),
      " | exact match: ", format_fixed(scores.exact_match, 2), " % | ", output,
      "/generated_predictions.jsonl");
}

}  // namespace megalith
