#include "libcore/io/streams/held_signals.h"

namespace megalith {

HeldSignals::HeldSignals() {
  sigset_t held;
  sigemptyset(&held);
  for (const int number : kStopSignals) sigaddset(&held, number);
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

HeldSignals::~HeldSignals() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void HeldSignals::let_end_child() const {
  for (const int number : kStopSignals) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN) std::signal(number, SIG_DFL);
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace megalith
