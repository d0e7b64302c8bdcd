#include "libcore/train/log/metrics.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

// Formats as Python's {:8d} and {:.6E} do.
std::string padded(int64_t value, size_t width) {
  const std::string digits = std::to_string(value);
  return std::string(width - std::min(width, digits.size()), ' ') + digits;
}

}  // namespace

void TrainLine::add(const StepFigures& step) {
  last_ = step;
  ++steps_;
  tokens_ += step.tokens;
  seconds_ += step.seconds;
  flops_ += step.flops;
  if (!std::isfinite(step.loss)) ++nan_;
  if (step.skipped)
    ++skipped_;
  else
    loss_sum_ += step.loss;
}

std::string TrainLine::text() const {
  const int64_t advanced = steps_ - skipped_;
  const double rate = flops_ / seconds_;
  const std::string throughput = about_.throughput ? concat(" | throughput per GPU (TFLOP/s/GPU): ",
                                                            format_fixed(rate / 1e12 / about_.ranks, 1))
                                                   : std::string();
  std::string line = concat(
      " iteration ", padded(last_.iteration, 8), "/", padded(about_.iterations, 8),
      " | consumed samples: ", padded(last_.consumed_samples, 12),
      " | elapsed time per iteration (ms): ", format_fixed(seconds_ * 1e3 / static_cast<double>(steps_), 1),
      throughput, " | learning rate: ", format_scientific(last_.*about_.rate, 6),
      " | global batch size: ", padded(last_.samples, 5), " |");
  if (advanced > 0)
    line += concat(" lm loss: ", format_scientific(loss_sum_ / static_cast<double>(advanced), 6), " |");
  const std::string share = about_.throughput && about_.machine_flops > 0
                                ? concat(" MFU: ", format_fixed(100 * rate / about_.machine_flops, 1), "% |")
                                : std::string();
  return line + concat(" loss scale: ", format_fixed(last_.loss_scale, 1),
                       " | grad norm: ", format_fixed(last_.grad_norm, 3),
                       " | number of skipped iterations: ", padded(skipped_, 3),
                       " | number of nan iterations: ", padded(nan_, 3),
                       " | tokens/s: ", format_fixed(static_cast<double>(tokens_) / seconds_, 1),
                       " | TFLOP/s: ", format_fixed(rate / 1e12, 3), " |", share,
                       " memory: ", format_bytes(static_cast<double>(last_.peak_memory)), " |");
}

void TrainLine::clear() {
  *this = TrainLine(about_);
}

std::string padded_iteration(int64_t iteration) {
  return padded(iteration, 7);
}

double perplexity(double loss) {
  return std::exp(std::min(20.0, loss));
}

std::string evaluation_line(std::string_view where, double loss, std::string_view set) {
  return concat(" validation", set.empty() ? "" : "-", set, " loss at ", where,
                " | lm loss value: ", format_scientific(loss, 6),
                " | lm loss PPL: ", format_scientific(perplexity(loss), 6), " |");
}

std::string tasks_line(const TasksReport& report) {
  constexpr double kHuge = 1e7;  // perplexities of a model that knows little
  std::string line = concat(" tasks at iteration ", report.iteration, " |");
  for (const TasksReport::Figure& figure : report.figures)
    line += concat(' ', printable(figure.task), ' ', figure.name, ": ",
                   figure.value < kHuge ? format_fixed(figure.value, 4) : format_scientific(figure.value, 4),
                   " |");
  return line + concat(" elapsed time (s): ", format_fixed(report.seconds, 1), " |");
}

std::string_view cut_line(std::string_view text) {
  constexpr std::string_view kBegin = "{\"type\"";
  const size_t newline = text.rfind('\n');
  if (newline != std::string_view::npos) text.remove_prefix(newline + 1);
  return text.starts_with(kBegin) || kBegin.starts_with(text) ? text : std::string_view();
}

namespace {

/// Removes the file's last line if it is incomplete. Otherwise the next line would be appended to it, and
/// neither line could be parsed. Returns `path`.
std::string without_cut_line(std::string path) {
  constexpr uint64_t kLongest = uint64_t{1} << 20;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return path;
  const ReadableFile file(path);
  std::string end(std::min(file.size(), kLongest), '\0');
  file.read_at(file.size() - end.size(), end.data(), end.size());
  if (const size_t cut = cut_line(end).size(); cut > 0)
    std::filesystem::resize_file(path, file.size() - cut, error);
  if (error) fail(ErrorKind::kIo, path, ": the truncated last line cannot be removed: ", error.message());
  return path;
}

}  // namespace

JsonLines::JsonLines(std::string path)
    : path_(without_cut_line(std::move(path))), file_(::fdopen(open_to_append(path_), "ab"), &std::fclose) {
  if (!file_) fail(ErrorKind::kIo, path_, ": cannot open for appending: ", std::strerror(errno));
}

void JsonLines::write(const Json& object) {
  const std::string line = object.dump() + "\n";
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0)
    fail(ErrorKind::kIo, path_, ": cannot write: ", std::strerror(errno));
}

RunLog::RunLog(const RunLogOptions& options) : flush_interval_(options.flush_interval), rate_(options.rate) {
  if (!options.tensorboard.empty())
    events_ = std::make_unique<EventWriter>(options.tensorboard, options.start > 0 ? options.start + 1 : 0);
  if (!options.json.empty()) lines_ = std::make_unique<JsonLines>(options.json);
}

template <class Entry>
void RunLog::write(const char* type, const Entry& entry) {
  if (!lines_) return;
  Json line = Json::object();
  add_fields(line, EntryHead{.type = type, .time = std::round(seconds_since_1970() * 1e3) / 1e3});
  add_fields(line, entry);
  lines_->write(line);
}

void RunLog::start(const StartEntry& entry) {
  write(kStartEntry, entry);
}

namespace {

StepEntry entry_of(const StepFigures& step, double rate) {
  return {.iteration = step.iteration,
          .consumed_samples = step.consumed_samples,
          .tokens = step.seen_tokens,
          .loss = step.loss,
          .lr = rate,
          .grad_norm = step.grad_norm,
          .loss_scale = step.loss_scale,
          .ms = step.seconds * 1e3,
          .tokens_per_s = static_cast<double>(step.tokens) / step.seconds,
          .tflops = step.flops / step.seconds / 1e12,
          .memory_bytes = static_cast<int64_t>(step.peak_memory),
          .batch = step.samples,
          .skipped = step.skipped};
}

}  // namespace

void RunLog::step(const StepReport& report) {
  const StepFigures& step = report.figures;
  const StepEntry entry = entry_of(step, step.*rate_);
  if (events_) {
    if (!step.skipped) events_->scalar("lm loss", step.iteration, step.loss);
    events_->scalar("learning-rate", step.iteration, entry.lr);
    events_->scalar("grad-norm", step.iteration, step.grad_norm);
    events_->scalar("loss-scale", step.iteration, step.loss_scale);
    events_->scalar("batch-size", step.iteration, static_cast<double>(step.samples));
    events_->scalar("iteration-time", step.iteration, step.seconds);
    events_->scalar("tokens-per-second", step.iteration, entry.tokens_per_s);
    events_->scalar("tflops", step.iteration, entry.tflops);
  }
  write(kStepEntry, entry);
  if (step.iteration % flush_interval_ == 0) flush();
}

void RunLog::evaluation(const EvaluationReport& report) {
  const double ppl = perplexity(report.loss);
  if (events_) {
    const std::string tag = report.test          ? "lm loss test"
                            : report.set.empty() ? "lm loss validation"
                                                 : concat("lm loss validation-", report.set);
    events_->scalar(tag, report.iteration, report.loss);
    events_->scalar(tag + " ppl", report.iteration, ppl);
  }
  write(report.test ? kTestEntry : kValidEntry,
        EvaluationEntry{.iteration = report.iteration,
                        .set = report.set.empty() ? std::nullopt : std::optional(report.set),
                        .loss = report.loss,
                        .ppl = ppl,
                        .accuracy = report.accuracy});
}

void RunLog::tasks(const TasksReport& report) {
  Json results = Json::object();
  for (const TasksReport::Figure& figure : report.figures) {
    if (events_) events_->scalar(figure.task + " " + figure.name, report.iteration, figure.value);
    const Json* const before = results.find(figure.task);
    Json task = before ? *before : Json::object();
    task.set(figure.name, figure.value);
    if (figure.error) task.set(figure.name + "_stderr", *figure.error);
    results.set(figure.task, std::move(task));
  }
  write(kTasksEntry,
        TasksEntry{.iteration = report.iteration, .seconds = report.seconds, .results = std::move(results)});
}

void RunLog::sample(const SampleReport& report) {
  if (events_) events_->text("sample", report.iteration, report.text);
  write(kSampleEntry,
        SampleEntry{.iteration = report.iteration, .prompt = report.prompt, .text = report.text});
}

void RunLog::saved(const SaveReport& report) {
  write(kSaveEntry, SaveEntry{.iteration = report.iteration, .path = report.path});
  flush();
}

void RunLog::end(const EndReport& report) {
  write(kEndEntry, EndEntry{.iteration = report.iteration, .reason = report.reason});
  flush();
}

void RunLog::flush() {
  if (events_) events_->flush();
}

}  // namespace megalith
