#include "apps/app.h"

#include <csignal>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "apps/siblings.h"
#include "apps/wait_policy.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/refusals.h"
#include "libcore/dialects/peers/peer_names.h"
#include "libcore/io/files/mapped_ranges.h"
#include "libcore/io/streams/standard_streams.h"

namespace megalith {
namespace {

/// Prepares the process: lets OpenMP's threads sleep, opens closed standard descriptors, and sets up signals
/// and std::cout. Must be called before any file is opened or written.
void prepare_process(const char* name) {
  report_refusals(name);
  check_stack_limit();
  let_openmp_sleep();
  open_standard_descriptors();
  // With these signals ignored, a write to a pipe without a reader or beyond `ulimit -f` fails with a message
  // and an exit code, and leaves nothing half written.
  for (const int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
  report_cut_files(name);
  check_cout();
}

/// The kind of error after a failed access to a path: kNoInput if the path does not exist, kIo if the system
/// failed.
ErrorKind kind_of(const std::error_code& reason) {
  if (reason == std::errc::not_enough_memory) return ErrorKind::kSystem;
  for (const std::errc nowhere : {std::errc::no_such_file_or_directory, std::errc::not_a_directory,
                                  std::errc::too_many_symbolic_link_levels, std::errc::filename_too_long})
    if (reason == nowhere) return ErrorKind::kNoInput;
  return ErrorKind::kIo;
}

bool is_run_file(std::string_view word) {
  return word.ends_with(".json") || word.ends_with(".yaml") || word.ends_with(".yml");
}

/// Runs `body`; its exit code, or that of what it throws, which it tells.
int code_of(const char* name, const std::function<int()>& body) {
  try {
    prepare_process(name);
    const int code = body();
    finish_stdout();
    return code;
  } catch (const ReaderGone&) {
    return 0;
  } catch (const Error& error) {
    tell(name, ": error: ", error.what());
    if (error.kind() == ErrorKind::kUsage) tell("see --help");
    return exit_code(error.kind());
  } catch (const std::filesystem::filesystem_error& error) {
    const ErrorKind kind = kind_of(error.code());
    tell(name, ": error: ", error.path1().string(), ": ",
         kind == ErrorKind::kSystem ? std::string(out_of_memory().what()) : error.code().message());
    return exit_code(kind);
  } catch (...) {
    const Error error = as_error(std::current_exception());
    tell(name, ": error: ", error.kind() == ErrorKind::kInternal ? "internal: " : "", error.what());
    return exit_code(error.kind());
  }
}

}  // namespace

int run_app(const char* name, const std::function<int()>& body) {
  const int code = code_of(name, body);
  end_normally();
  return code;
}

bool read_options(Options& options, int argc, const char* const* argv) {
  options.elsewhere(who_has).peer_names(peer_names());
  const auto text = options.read({argv + (argc > 0 ? 1 : 0), argv + argc});
  if (text) write_stdout(*text);
  return !text;
}

std::vector<const char*> with_named_file(int argc, const char* const* argv, int within) {
  std::vector<const char*> words(argv, argv + argc);
  for (int i = 1; i < argc && i <= within; ++i) {
    const bool after_option = i > 1 && std::string_view(argv[i - 1]).starts_with('-');
    if (after_option || !is_run_file(argv[i])) continue;
    words.insert(words.begin() + i, "--config");
    break;
  }
  return words;
}

bool parse_options(Options& options, int argc, const char* const* argv) {
  if (!read_options(options, argc, argv)) return false;
  options.check();
  return true;
}

}  // namespace megalith
