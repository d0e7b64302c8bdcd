#include "libcore/train/log/run_observer.h"

#include <map>
#include <utility>

namespace megalith {
namespace {

struct Style {
  ObserverMaker make;
  LoggedRate rate;
};

auto& log_styles() {
  static std::map<LogStyle, Style> styles;
  return styles;
}

}  // namespace

void RunObservers::add(std::unique_ptr<RunObserver> observer) {
  if (observer) observers_.push_back(std::move(observer));
}

ObserverNeeds RunObservers::needs() const {
  ObserverNeeds all;
  for (const auto& observer : observers_) {
    const ObserverNeeds needs = observer->needs();
    all.own_loss |= needs.own_loss;
    all.train_loss |= needs.train_loss;
  }
  return all;
}

void RunObservers::before_step(int64_t iteration) {
  for (const auto& observer : observers_) observer->before_step(iteration);
}

void RunObservers::step(const StepReport& report) {
  for (const auto& observer : observers_) observer->step(report);
}

void RunObservers::evaluation(const EvaluationReport& report) {
  for (const auto& observer : observers_) observer->evaluation(report);
}

void RunObservers::tasks(const TasksReport& report) {
  for (const auto& observer : observers_) observer->tasks(report);
}

void RunObservers::sample(const SampleReport& report) {
  for (const auto& observer : observers_) observer->sample(report);
}

void RunObservers::saved(const SaveReport& report) {
  for (const auto& observer : observers_) observer->saved(report);
}

void RunObservers::step_done(int64_t iteration) {
  for (const auto& observer : observers_) observer->step_done(iteration);
}

void RunObservers::end(const EndReport& report) {
  for (const auto& observer : observers_) observer->end(report);
}

bool add_log_style(LogStyle style, ObserverMaker make, LoggedRate rate) {
  return log_styles().emplace(style, Style{make, rate}).second;
}

LoggedRate logged_rate(LogStyle style) {
  const auto found = log_styles().find(style);
  return found == log_styles().end() ? &StepFigures::next_rate : found->second.rate;
}

std::unique_ptr<RunObserver> make_styled_lines(const ObservedRun& run) {
  const auto found = log_styles().find(run.config.train.log_style);
  return found == log_styles().end() ? nullptr : found->second.make(run);
}

}  // namespace megalith
