#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <sys/types.h>

#include "libcore/doctor/finding.h"

namespace megalith {

/// A check that runs in a process of its own, beside others. If it crashes or does not end, that is what was
/// found. Construct it while this process has one thread.
class CheckProcess {
 public:
  /// Starts the check. `name` is that of the finding if the check itself fails. An Error that it throws is a
  /// finding, too.
  CheckProcess(std::string name, const std::function<Findings()>& check);
  ~CheckProcess();
  CheckProcess(CheckProcess&& other) noexcept;
  CheckProcess& operator=(CheckProcess&&) = delete;
  CheckProcess(const CheckProcess&) = delete;
  CheckProcess& operator=(const CheckProcess&) = delete;

  /// Waits for the check, at most until the deadline, and ends its process.
  Findings take(std::chrono::steady_clock::time_point deadline);

 private:
  Finding failure() const;
  void end();

  std::string name_, refused_;  // refused_: why no process could be started
  pid_t process_ = -1;
  int pipe_ = -1;
  int status_ = 0;
};

}  // namespace megalith
