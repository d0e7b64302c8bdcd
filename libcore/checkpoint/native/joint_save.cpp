#include "libcore/checkpoint/native/joint_save.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/refusals.h"
#include "libcore/base/text.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/together.h"

namespace megalith {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kBetweenLines(60);  // between two log lines about a slow disk

/// Runs `step`. If it throws, returns the exception as an Error.
template <class Step>
std::optional<Error> error_of(const Step& step) {
  try {
    step();
  } catch (const Error& error) {
    return error;
  } catch (const std::filesystem::filesystem_error& error) {
    return Error(ErrorKind::kIo, error.what());
  } catch (...) {
    return as_error(std::current_exception());
  }
  return std::nullopt;
}

}  // namespace

/// What a rank tells the others about its step.
struct JointSave::Report {
  enum State { kRuns, kDone, kFailed } state = kRuns;
  ErrorKind kind = ErrorKind::kIo;  // of the error, if the step failed
  std::string error = {};           // the message, if the step failed

  template <class V>
  void members(V&& visit) {
    visit(state, kind, error);
  }
};

JointSave::JointSave(Communicator& ranks, std::chrono::milliseconds peer_timeout)
    : ranks_(ranks), round_(between_signs_of_life(peer_timeout)) {}

JointSave::~JointSave() {
  if (phase_ == Phase::kNone) return;
  if (ranks_.size() == 1) {
    if (const auto error = error_of([this] { finish_alone(); })) warn(error->what());
    return;
  }
  given_up_ = true;
  const Phase phase = phase_;
  if (phase == Phase::kPublish && thread_) thread_->drain();  // a publish is short, so it is completed
  thread_.reset();                                            // waits for the running step
  if (phase != Phase::kPublish && ranks_.rank() == 0) job_->discard();
}

void JointSave::start(std::unique_ptr<CheckpointJob> job) {
  finish();
  job_ = std::move(job);
  enter(Phase::kBegin);
  while (phase_ == Phase::kBegin) wait_once();
}

void JointSave::save(std::unique_ptr<CheckpointJob> job) {
  if (ranks_.size() > 1) {
    start(std::move(job));
    return finish();
  }
  finish();
  const auto error = error_of([&] {
    job->begin();
    job->write(0, {});
    job->publish(1);
  });
  if (!error) return;
  job->discard();
  throw Error(*error);
}

void JointSave::finish() {
  while (under_way()) wait_once();
}

/// Completes the save of a single rank, from the destructor.
void JointSave::finish_alone() {
  while (under_way()) {
    thread_->drain();
    advance();
  }
}

/// Waits for this rank's step, but only until the next report to the other ranks is due: they would take a
/// longer silence on a slow disk for a hang.
void JointSave::wait_once() {
  wait_for_step(round_);
  advance();
}

void JointSave::wait_for_step(std::chrono::milliseconds max_wait) {
  if (!thread_) return;
  SerialExecutor::Lock lock = thread_->state().lock();
  thread_->state().wait_for(lock, max_wait, [this] { return step_done_; });
}

/// Starts this rank's step of a phase. The first rank has a step in every phase, the others only in kWrite.
void JointSave::enter(Phase phase) {
  phase_ = phase;
  began_ = told_ = steady_clock::now();
  if (phase == Phase::kNone) return job_.reset();
  if (ranks_.rank() > 0 && phase != Phase::kWrite) return;
  if (!thread_) thread_.emplace("the thread that writes a checkpoint");
  {
    const SerialExecutor::Lock lock = thread_->state().lock();
    step_done_ = false;
  }
  thread_->give([this] { run_step(); });
}

/// Runs this rank's step, on `thread_`. `phase_` and `job_` do not change until the step is done.
void JointSave::run_step() {
  auto error = error_of([this] {
    if (phase_ == Phase::kBegin) job_->begin();
    if (phase_ == Phase::kPublish) job_->publish(ranks_.size());
    if (phase_ != Phase::kWrite) return;
    job_->write(ranks_.rank(), [this] {
      if (given_up_) fail(ErrorKind::kComm, "given up");
    });
  });
  const SerialExecutor::Lock lock = thread_->state().lock();
  error_ = std::move(error);
  step_done_ = true;
}

JointSave::Report JointSave::own_report() {
  if (!thread_) return {Report::kDone};
  const SerialExecutor::Lock lock = thread_->state().lock();
  if (!step_done_) return {Report::kRuns};
  return error_ ? Report{Report::kFailed, error_->kind(), error_->what()} : Report{Report::kDone};
}

bool JointSave::advance() {
  if (phase_ == Phase::kNone) return false;
  const std::vector<Report> reports = exchange_values(ranks_, own_report());
  std::vector<int> busy;
  for (size_t rank = 0; rank < reports.size(); ++rank) {
    if (reports[rank].state == Report::kFailed) fail_all(reports);
    if (reports[rank].state == Report::kRuns) busy.push_back(static_cast<int>(rank));
  }
  if (busy.empty()) {
    const Phase ended = phase_;
    enter(ended == Phase::kBegin ? Phase::kWrite : ended == Phase::kWrite ? Phase::kPublish : Phase::kNone);
    return ended == Phase::kPublish;
  }
  if (const auto now = steady_clock::now(); now - told_ > kBetweenLines) {
    told_ = now;
    std::vector<std::string> names;
    for (const int rank : busy) names.push_back(std::to_string(rank));
    log("the checkpoint is still being written by ", names.size() == 1 ? "rank " : "ranks ",
        join(names, ", "), ", for ", format_duration(seconds_since(began_)));
  }
  return false;
}

void JointSave::fail_all(const std::vector<Report>& reports) {
  std::optional<Error> own;
  if (thread_) {
    const SerialExecutor::Lock lock = thread_->state().lock();
    if (step_done_) own = error_;
  }
  given_up_ = true;
  thread_.reset();
  // Waits for all ranks. No rank may exit and so close its connections before the others know of the failure.
  // After this, no rank writes any more.
  (void)error_of([this] { ranks_.exchange({}); });
  if (ranks_.rank() == 0) job_->discard();
  enter(Phase::kNone);
  step_done_ = true;
  error_.reset();
  given_up_ = false;
  if (own) throw Error(*own);
  for (size_t rank = 0; rank < reports.size(); ++rank)
    if (reports[rank].state == Report::kFailed)
      fail(reports[rank].kind, "another rank could not write its part of the checkpoint: rank ", rank, ": ",
           reports[rank].error);
  fail(ErrorKind::kInternal, "a save failed on no rank");
}

}  // namespace megalith
