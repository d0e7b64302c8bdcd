#include "apps/app.h"

#include <csignal>
#include <exception>
#include <new>

#include "apps/wait_policy.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/standard_streams.h"

namespace megalith {
namespace {

/// What the process needs before anything is opened or written.
void prepare_process() {
  let_openmp_sleep();
  open_standard_descriptors();
  // A write to a pipe without a reader, or beyond `ulimit -f`, fails: with a message, an exit code, and
  // without what is half written left behind.
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
  check_cout();
}

}  // namespace

int run_app(const char* name, const std::function<int()>& body) {
  try {
    prepare_process();
    const int code = body();
    finish_stdout();
    return code;
  } catch (const ReaderGone&) {
    return 0;
  } catch (const Error& error) {
    log(name, ": error: ", error.what(), error.kind() == ErrorKind::kUsage ? "\nsee --help" : "");
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
  if (text) write_stdout(*text);
  return !text;
}

bool parse_options(Options& options, int argc, const char* const* argv) {
  if (!read_options(options, argc, argv)) return false;
  options.check();
  return true;
}

}  // namespace megalith
