#pragma once

#include <string>
#include <vector>

#include "libcore/base/log.h"

namespace megalith::test {

/// Collects the lines of the log during its lifetime.
class LogLines {
 public:
  LogLines() : before_(set_log_sink([this](const std::string& line) { lines.push_back(line); })) {}
  ~LogLines() { set_log_sink(before_); }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  std::vector<std::string> lines;

 private:
  LogSink before_;
};

}  // namespace megalith::test
