#include "libcore/io/streams/stop_signal.h"

#include <cerrno>

#include <unistd.h>

namespace megalith {
namespace {

volatile std::sig_atomic_t received = 0;     // the first signal
volatile std::sig_atomic_t interrupted = 0;  // whether SIGINT itself was received
const Interrupt* waker = nullptr;

/// Tells a user who pressed Ctrl-C that the signal was received: the current step may still take a while.
void answer_at_once() {
  constexpr std::string_view kAnswer =
      "\nstopping as soon as the current work is complete; Ctrl-C again stops at once\n";
  const int before = errno;
  if (::write(STDERR_FILENO, kAnswer.data(), kAnswer.size()) < 0) errno = before;  // cannot be reported
}

/// The signal that is meant: the process that starts ranks passes SIGINT on as a queued SIGTERM with that
/// number.
int meant(int number, const siginfo_t& info) {
  const bool passed_on = number == SIGTERM && info.si_code == SI_QUEUE && info.si_value.sival_int == SIGINT;
  return passed_on ? SIGINT : number;
}

void on_signal(int number, siginfo_t* info, void*) {
  if (number == SIGINT && interrupted != 0) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  if (number == SIGINT) {
    interrupted = 1;
    answer_at_once();
  }
  if (received == 0) received = meant(number, *info);
  if (waker) waker->set();  // safe in a signal handler: set() calls only write(2)
}

std::string_view name_of_received() {
  switch (received) {
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGUSR1:
      return "SIGUSR1";
    case SIGHUP:
      return "SIGHUP";
    default:
      return "";
  }
}

}  // namespace

StopSignal::StopSignal(const Interrupt* wake) {
  received = 0;
  interrupted = 0;
  waker = wake;
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO | SA_RESTART;  // restarts the current step's interrupted reads and writes
  for (size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], &action, &before_[i]);
    if (kStopSignals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN)  // under nohup, SIGHUP stays ignored
      sigaction(SIGHUP, &before_[i], nullptr);
  }
}

StopSignal::~StopSignal() {
  for (size_t i = 0; i < kStopSignals.size(); ++i) sigaction(kStopSignals[i], &before_[i], nullptr);
  waker = nullptr;
  received = 0;
  interrupted = 0;
}

int StopSignal::number() const {
  return received;
}

bool StopSignal::asked() const {
  return received != 0;
}

std::string_view StopSignal::name() const {
  return name_of_received();
}

namespace {
thread_local int holds = 0;
}

void stop_if_asked() {
  if (received != 0 && holds == 0) throw Stopped{received, name_of_received()};
}

HoldStop::HoldStop() {
  ++holds;
}

HoldStop::~HoldStop() {
  --holds;
}

}  // namespace megalith
