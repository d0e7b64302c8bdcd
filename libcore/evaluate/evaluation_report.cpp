#include "libcore/evaluate/evaluation_report.h"

#include "libcore/base/figures/text_table.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/text/unicode/python_text.h"

namespace megalith {
namespace {

/// A figure with four digits after the point. Perplexities of a model that knows little are huge.
std::string figure_text(double value) {
  constexpr int kDigits = 4;
  constexpr double kHuge = 1e7;
  return value < kHuge ? format_fixed(value, kDigits) : format_scientific(value, kDigits);
}

Json metrics_json(const TaskResult& result) {
  Json out = Json::object();
  out.set("alias", result.task->name());
  for (const Metric& metric : result.metrics) {
    out.set(metric.name + ",none", metric.value);
    out.set(metric.name + "_stderr,none", metric.error ? Json(*metric.error) : Json("N/A"));
  }
  return out;
}

/// An object with a member for each task.
template <class Value>
Json by_task(std::span<const TaskResult> results, const Value& value) {
  Json out = Json::object();
  for (const TaskResult& result : results) out.set(result.task->name(), value(result));
  return out;
}

}  // namespace

std::string results_table(std::span<const TaskResult> results) {
  TextTable table{.rows = {{"task", "n-shot", "items", "metric", "value", "stderr"}}, .texts = {0, 3}};
  for (const TaskResult& result : results)
    for (const Metric& metric : result.metrics)
      table.rows.push_back({printable(result.task->name()), concat(result.task->shots()),
                            concat(result.task->items().size()), metric.name, figure_text(metric.value),
                            metric.error ? figure_text(*metric.error) : "N/A"});
  return table_text(table, 0);
}

Json results_json(std::span<const TaskResult> results, const EvaluateConfig& config) {
  Json out = Json::object();
  out.set("results", by_task(results, metrics_json));
  out.set("n-shot", by_task(results, [](const TaskResult& result) { return Json(result.task->shots()); }));
  out.set("higher_is_better", by_task(results, [](const TaskResult& result) {
            Json better = Json::object();
            for (const Metric& metric : result.metrics) better.set(metric.name, metric.higher_is_better);
            return better;
          }));
  out.set("n-samples", by_task(results, [](const TaskResult& result) {
            return Json(Json::Object{{"original", static_cast<int64_t>(result.task->items_in_file())},
                                     {"effective", static_cast<int64_t>(result.task->items().size())}});
          }));
  out.set("config", Json::Object{{"model", config.model.model},
                                 {"adapter", config.model.adapter},
                                 {"tasks", join(config.task.tasks, ",")},
                                 {"fewshot_data", join(config.task.fewshot_data, ",")},
                                 {"num_fewshot", config.task.fewshots},
                                 {"limit", config.task.limit},
                                 {"fewshot_seed", config.task.seed},
                                 {"batch_size", config.run.batch},
                                 {"max_length", config.run.max_length},
                                 {"device", config.run.device},
                                 {"bf16", config.run.bf16}});
  return out;
}

Json sample_json(const TaskRun& task, size_t number) {
  const TaskItem& item = task.items()[number];
  const std::vector<Likelihood>& likelihoods = task.likelihoods()[number];
  Json out = Json::object(), texts = Json::array(), logs = Json::array(), greedy = Json::array();
  for (size_t i = 0; i < likelihoods.size(); ++i) {
    texts.push_back(task.continuation(number, i));
    logs.push_back(likelihoods[i].log);
    greedy.push_back(likelihoods[i].greedy);
  }
  out.set("task", task.name());
  out.set("doc_id", static_cast<int64_t>(number));
  out.set("context", task.context(number));
  out.set("continuations", std::move(texts));
  out.set("loglikelihoods", std::move(logs));
  if (task.kind() == TaskKind::kText) {
    const std::string& text = item.continuations[0];
    out.set("words", blank_separated_parts(text));
    out.set("bytes", static_cast<int64_t>(text.size()));
    return out;
  }
  out.set("greedy", std::move(greedy));
  if (task.kind() == TaskKind::kLastWord) {
    out.set("acc", likelihoods[0].greedy ? 1 : 0);
    return out;
  }
  out.set("answer", static_cast<int64_t>(item.answer));
  out.set("acc", likeliest_choice(likelihoods) == item.answer ? 1 : 0);
  out.set("acc_norm", likeliest_by_length(item, likelihoods) == item.answer ? 1 : 0);
  return out;
}

}  // namespace megalith
