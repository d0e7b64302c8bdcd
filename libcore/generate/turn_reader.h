#pragma once

#include <csignal>
#include <string>

#include "libcore/io/streams/input_stream.h"

namespace megalith {

/// While this object lives, the first Ctrl-C (SIGINT) is noted and does not end the process; one more before
/// clear() ends it. Only one object may exist at a time.
class AnswerStop {
 public:
  AnswerStop();
  ~AnswerStop();
  AnswerStop(const AnswerStop&) = delete;
  AnswerStop& operator=(const AnswerStop&) = delete;

  bool asked() const;
  void clear();
  /// Readable after a Ctrl-C, until woken() is called.
  int descriptor() const { return wake_.descriptor(); }
  void woken();

 private:
  Interrupt wake_;
  struct sigaction before_;
};

/// Reads the lines of stdin one by one, each as soon as it is complete.
class TurnReader {
 public:
  /// `stop`: what interrupts a wait for a line; null: nothing does.
  explicit TurnReader(AnswerStop* stop) : stop_(stop) {}

  enum class Got { kLine, kEnd, kInterrupted };
  /// Puts the next line, without its end, into `line`. kIo if stdin cannot be read; kData for a line that is
  /// not UTF-8 or has more than kLongestLine bytes.
  Got next(std::string& line);

 private:
  bool wait();  // false: interrupted
  bool take_line(std::string& line);
  void read_more();

  AnswerStop* stop_;
  std::string waiting_;  // what was read and is not in a line yet
  bool ended_ = false;
};

}  // namespace megalith
