#include "tests/emulator/report.h"

#include <cstring>

#include <execinfo.h>
#include <unistd.h>

namespace megalith::emulator {

void end_in_handler(const char* what) {
  constexpr int kMaxFrames = 40;
  for (const char* text : {"emulated cuda: ", what, "\n"})
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) break;
  void* frames[kMaxFrames];
  backtrace_symbols_fd(frames, backtrace(frames, kMaxFrames), STDERR_FILENO);
  _exit(kMisused);
}

void end_with(const std::string& what) {
  end_in_handler(what.c_str());
}

}  // namespace megalith::emulator
