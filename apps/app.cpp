#include "apps/app.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include "libcore/base/error.h"
#include "libcore/base/log.h"

namespace megalith {

int run_app(const char* name, const std::function<int()>& body) {
  std::signal(SIGPIPE,
              SIG_IGN);  // a closed reader shows as a failed write, which has a message and an exit code
  try {
    const int code = body();
    if (std::fflush(stdout) != 0) fail(ErrorKind::kIo, "stdout: cannot write");
    return code;
  } catch (const Error& error) {
    log(name, ": error: ", error.what());
    return exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    log(name, ": error: out of memory");
    return exit_code(ErrorKind::kInternal);
  } catch (const std::exception& error) {
    log(name, ": error: internal: ", error.what());
    return exit_code(ErrorKind::kInternal);
  }
}

bool read_options(Options& options, int argc, const char* const* argv) {
  const auto text = options.read({argv + (argc > 0 ? 1 : 0), argv + argc});
  if (text) std::fputs(text->c_str(), stdout);
  return !text;
}

bool parse_options(Options& options, int argc, const char* const* argv) {
  if (!read_options(options, argc, argv)) return false;
  options.check();
  return true;
}

}  // namespace megalith
