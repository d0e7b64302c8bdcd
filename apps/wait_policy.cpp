#include "apps/wait_policy.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include "libcore/base/process.h"

namespace megalith {
namespace {

constexpr const char* kSpins = "GOMP_SPINCOUNT";
/// A few microseconds, so that no thread has to be woken for a short loop: docs/training.md has the figures.
constexpr const char* kShortWait = "1000";

bool only_prints(const std::string& word) {
  return word == "-h" || word == "--version" || word.starts_with("--help");
}

/// The path of this program; empty if its file was replaced while it ran.
std::string own_program() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error || !std::filesystem::exists(path, error) ? std::string() : path.string();
}

}  // namespace

void let_openmp_sleep() {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv(kSpins) || !::dlsym(RTLD_DEFAULT, "omp_get_max_threads"))
    return;
  std::vector<std::string> words = own_words();
  const std::string program = own_program();
  if (words.empty() || program.empty() || std::any_of(words.begin() + 1, words.end(), only_prints)) return;
  std::vector<char*> arguments;
  std::transform(words.begin(), words.end(), std::back_inserter(arguments),
                 [](std::string& w) { return w.data(); });
  arguments.push_back(nullptr);
  ::setenv(kSpins, kShortWait, 1);
  ::execv(program.c_str(), arguments.data());  // on failure the program runs on, and its threads spin
}

}  // namespace megalith
