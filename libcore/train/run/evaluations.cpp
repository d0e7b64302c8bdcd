#include "libcore/train/run/evaluations.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/data/samples/split.h"
#include "libcore/parallel/exchange.h"

namespace megalith {
namespace {

/// The samples of a set, repeated without end.
SampleSource repeated(const DataSet& set) {
  SampleSource out = [&](int64_t index, const SampleView& view) { set.read.read(index % set.size, view); };
  if (set.read.length) out.length = [&](int64_t index) { return set.read.length(index % set.size); };
  if (set.read.counted) out.counted = [&](int64_t index) { return set.read.counted(index % set.size); };
  if (set.read.example) out.example = [&](int64_t index) { return set.read.example(index % set.size); };
  return out;
}

/// A sample that has no label.
void read_nothing(const SampleView& out) {
  std::ranges::fill(out.tokens, 0);
  std::ranges::fill(out.labels, 0);
  std::ranges::fill(out.loss_mask, 0.0f);
  std::ranges::fill(out.starts, 0);
}

/// The samples of a set, followed by samples without labels, which fill its last batch.
SampleSource filled_up(const DataSet& set) {
  SampleSource out = [&](int64_t index, const SampleView& view) {
    index < set.size ? set.read.read(index, view) : read_nothing(view);
  };
  out.counted = [&](int64_t index) { return index < set.size ? set.read.counted(index) : 0; };
  return out;
}

/// The weight of one step's loss in the mean over several steps: the number of the step's counted labels if
/// known, so that each label has the same weight.
double weight_of(const SampleSource& source, int64_t first, int64_t end) {
  if (!source.counted) return 1;
  int64_t sum = 0;
  for (int64_t i = first; i < end; ++i) sum += source.counted(i);
  return static_cast<double>(sum);
}

/// The first sample of the last step's epoch.
int64_t epoch_begin(const DataSet& train, const TrainState& state) {
  return train.epoch > 0 && state.consumed_train > 0 ? (state.consumed_train - 1) / train.epoch * train.epoch
                                                     : 0;
}

}  // namespace

Evaluations::Evaluations(const TrainConfig& train, const DataSets& data, Trainer& trainer,
                         EvaluationOptions options)
    : train_(train), data_(data), trainer_(trainer), options_(std::move(options)) {}

bool Evaluations::any_rank_stops() const {
  const std::vector<char> stops =
      exchange_values(trainer_.groups().world, static_cast<char>(options_.stop()));
  return std::ranges::find(stops, 1) != stops.end();
}

int64_t Evaluations::batches_of(const DataSet& set) const {
  const int64_t batch = train_.global_batch;
  if (set.whole) return (set.size + batch - 1) / batch;
  if (set.from_the_beginning) return std::clamp<int64_t>(set.size / batch, 1, train_.eval_iters);
  return train_.eval_iters;
}

int64_t Evaluations::samples_of(const DataSet& set) const {
  return set.whole ? set.size : batches_of(set) * train_.global_batch;
}

std::optional<double> Evaluations::mean_loss(const DataSet& set, int64_t first_sample,
                                             Trainer::LabelCounts* counts) const {
  const SampleSource source = set.whole ? filled_up(set) : repeated(set);
  const int64_t batch = train_.global_batch, batches = batches_of(set);
  double sum = 0, all = 0;
  Progress progress("validation", batches, "batches");
  for (int64_t i = 0; i < batches; ++i) {
    progress.advance_to(i);
    if (any_rank_stops()) return std::nullopt;
    const int64_t first = first_sample + i * batch;
    const double weight = weight_of(source, first, first + batch);
    if (weight > 0) sum += weight * trainer_.evaluate(source, first, counts);
    all += weight;
  }
  return sum / std::max(all, 1.0);
}

std::string Evaluations::name_of_set(size_t set) const {
  if (!train_.multiple_validation) return {};
  return train_.validation_names.empty() ? std::to_string(set) : train_.validation_names[set];
}

std::optional<EvaluationReport> Evaluations::validation_of(size_t set, const TrainState& state,
                                                           const std::string& where) const {
  const auto began = std::chrono::steady_clock::now();
  const DataSet& data = validation_set(set);
  EvaluationReport report{.where = where,
                          .set = name_of_set(set),
                          .iteration = state.iteration,
                          .batches = batches_of(data),
                          .samples = samples_of(data)};
  Trainer::LabelCounts labels;
  const bool first_samples = data.from_the_beginning || data.whole;
  const auto loss =
      mean_loss(data, first_samples ? 0 : state.consumed_valid, options_.accuracy ? &labels : nullptr);
  if (!loss) return std::nullopt;
  report.loss = *loss;
  if (options_.accuracy) report.accuracy = labels.chosen / std::max(labels.counted, 1.0);
  if (options_.train_loss && data_.train.size > 0 && set == 0 && train_.eval_iters > 0) {
    report.train_loss = mean_loss(data_.train, epoch_begin(data_.train, state));
    if (!report.train_loss) return std::nullopt;
  }
  report.seconds = seconds_since(began);
  return report;
}

std::optional<std::vector<EvaluationReport>> Evaluations::validation(const TrainState& state,
                                                                     const std::string& where) const {
  std::vector<EvaluationReport> reports;
  for (size_t set = 0; set <= data_.more_valid.size(); ++set) {
    auto report = validation_of(set, state, where);
    if (!report) return std::nullopt;
    reports.push_back(*std::move(report));
  }
  return reports;
}

std::optional<EvaluationReport> Evaluations::test(const TrainState& state) const {
  const auto loss = mean_loss(data_.test, 0);
  if (!loss) return std::nullopt;
  return EvaluationReport{.where = concat("iteration ", state.iteration, " on test set"),
                          .test = true,
                          .iteration = state.iteration,
                          .loss = *loss,
                          .batches = batches_of(data_.test),
                          .samples = samples_of(data_.test)};
}

namespace {
bool rounds_to_nothing(const std::optional<SequenceRange>& part) {
  return part && part->begin == part->end;
}

/// The end of a warning about missing data: a split that works, if the given one only rounds to nothing.
std::string advised_split(const std::string& split, int64_t sequences) {
  if (sequences == 0) return {};
  const auto parts = split_sequences(split, sequences);
  const bool rounded = rounds_to_nothing(parts[1]) || rounds_to_nothing(parts[2]);
  const std::string other = rounded ? split_with_all_parts(split, sequences) : std::string();
  return other.empty() ? std::string() : concat("; --split ", other, " gives each part some documents");
}
}  // namespace

// As in Megatron, evaluations without data are left out.
void warn_of_missing_evaluations(const PretrainConfig& config, const DataSets& data) {
  const bool tested = data.test.size > 0 || config.data.reads_texts();
  const bool only_valid = config.train.eval_iters == 0;  // the test set is read for --eval-iters batches
  if (only_valid && !config.train.full_validation) return;
  if (data.valid.size > 0 && (tested || only_valid)) return;
  const char* parts = data.valid.size > 0                ? "test"
                      : data.test.size > 0 || only_valid ? "validation"
                                                         : "validation and test";
  if (config.data.has_own_paths())
    warn("no ", parts, " data are given: that evaluation is left out");
  else
    warn("--split ", quote(config.data.split), " leaves no ", parts, " data: that evaluation is left out",
         advised_split(config.data.split, data.divided));
}

}  // namespace megalith
