#include "libcore/evaluate/task_run.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/generate/sources/model_tokenizer.h"

namespace megalith {

TaskRun::TaskRun(TaskSpec spec, const TaskOptions& options)
    : spec_(std::move(spec)),
      names_(options.names),
      task_(read_task_items(spec_.path, spec_.form)),
      items_in_file_(task_.items.size()),
      shots_(task_.kind == TaskKind::kText ? 0 : options.fewshots),
      seed_(options.seed) {
  read_examples();
  const size_t limit = options.limit > 0 ? static_cast<size_t>(options.limit) : items_in_file_;
  task_.items.resize(std::min(limit, items_in_file_));
}

void TaskRun::read_examples() {
  if (!spec_.examples.empty() && shots_ == 0)
    fail(ErrorKind::kUsage, "--", names_.fewshot_data, ' ', spec_.name, "=", spec_.examples, ": ", spec_.path,
         " holds texts, before which there are no examples; leave it out");
  if (shots_ == 0) return;
  if (spec_.examples.empty()) {
    examples_ = task_.items;
    return;
  }
  TaskItems other = read_task_items(spec_.examples, spec_.form);
  if (other.kind != task_.kind)
    fail(ErrorKind::kData, spec_.examples, ": holds texts, ", spec_.path,
         " choices; wanted examples with choices");
  examples_ = std::move(other.items);
}

uint64_t TaskRun::bytes() const {
  uint64_t sum = 0;
  for (const TaskItem& item : items())
    for (const std::string& text : item.continuations)
      sum += (item.context.size() + text.size()) * static_cast<uint64_t>(shots_ + 1);
  return sum;
}

std::string TaskRun::continuation(size_t item, size_t number) const {
  const std::string& text = items()[item].continuations[number];
  return kind() == TaskKind::kChoices ? kTargetDelimiter + text : text;
}

void TaskRun::encode(PairEncoder& encoder, std::vector<ScoredTokens>& texts) {
  const bool own = spec_.examples.empty();
  FewShots shots(task_, {examples_, own ? spec_.path : spec_.examples, own, names_}, shots_, seed_);
  for (size_t i = 0; i < items().size(); ++i) {
    const TaskItem& item = items()[i];
    Request request{.context = shots.context(item)};
    for (size_t j = 0; j < item.continuations.size(); ++j) {
      if (kind() == TaskKind::kText) {
        std::vector<ScoredTokens> windows = encoder.windows(item.continuations[j]);
        request.windows.push_back(windows.size());
        std::ranges::move(windows, std::back_inserter(texts));
      } else {
        request.windows.push_back(1);
        texts.push_back(
            encoder.pair(request.context, continuation(i, j), concat(spec_.path, ": item ", i + 1)));
      }
    }
    requests_.push_back(std::move(request));
  }
  examples_ = {};
}

std::span<const Likelihood> TaskRun::take(std::span<const Likelihood> likelihoods) {
  likelihoods_.clear();
  for (const Request& request : requests_) {
    std::vector<Likelihood>& item = likelihoods_.emplace_back();
    for (const size_t windows : request.windows) {
      Likelihood& sum = item.emplace_back();
      for (const Likelihood& one : likelihoods.first(windows)) {
        sum.log += one.log;
        sum.greedy = sum.greedy && one.greedy;
      }
      likelihoods = likelihoods.subspan(windows);
    }
  }
  return likelihoods;
}

std::vector<TaskRun> read_tasks(const std::vector<TaskSpec>& specs, const TaskOptions& options) {
  std::vector<TaskRun> tasks;
  for (const TaskSpec& spec : specs) tasks.emplace_back(spec, options);
  if (options.fewshots > 0 && std::ranges::all_of(tasks, [](const TaskRun& t) { return t.shots() == 0; }))
    fail(ErrorKind::kUsage, "--", options.names.fewshots, ' ', options.fewshots,
         ": the tasks hold texts, before which there are no examples; leave it out");
  return tasks;
}

std::vector<ScoredTokens> encode_tasks(std::span<TaskRun> tasks, PairEncoder& encoder, int64_t vocabulary,
                                       std::string_view tokenizer) {
  std::vector<ScoredTokens> texts;
  for (TaskRun& task : tasks) task.encode(encoder, texts);
  for (const ScoredTokens& text : texts) check_ids(text.tokens, vocabulary, tokenizer);
  return texts;
}

}  // namespace megalith
