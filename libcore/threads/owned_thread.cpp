#include "libcore/threads/owned_thread.h"

#include <utility>

#include "libcore/threads/last_wait.h"

namespace megalith {

OwnedThread::OwnedThread(const char* what, std::function<void()> body)
    : what_(what), thread_([this, body = std::move(body)] {
        body();
        end_.set_value();
      }) {}

OwnedThread::~OwnedThread() {
  if (!thread_.joinable()) return;
  if (end_.get_future().wait_for(last_wait_limit()) == std::future_status::timeout) end_late_process(what_);
  thread_.join();
}

void OwnedThread::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace megalith
