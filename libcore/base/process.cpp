#include "libcore/base/process.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include <sys/resource.h>

#include "libcore/base/text.h"

namespace megalith {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

uint64_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);  // cannot fail with RUSAGE_SELF
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

namespace {

/// The number at the beginning of a word, as text without sign and leading zeros: "0" for "0x1". Nothing if
/// the word does not begin with a number, or begins with a negative one.
std::optional<std::string> leading_number(std::string_view word) {
  const bool negative = word.starts_with('-');
  if (negative || word.starts_with('+')) word.remove_prefix(1);
  const size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
  if (digits == 0) return std::nullopt;
  const std::string_view number = word.substr(0, digits);
  const size_t zeros = std::min(number.find_first_not_of('0'), digits - 1);
  if (negative && number.substr(zeros) != "0") return std::nullopt;
  return std::string(number.substr(zeros));
}

/// The devices that a value of CUDA_VISIBLE_DEVICES names. Empty if it names a device twice, as in torch.
std::vector<std::string> named_gpus(const std::string& list) {
  std::string_view prefix;  // set if the first word is a unique id: then all must be
  for (const std::string_view kind : {"GPU-", "MIG-"})
    if (list.starts_with(kind)) prefix = kind;
  std::vector<std::string> gpus;
  for (const std::string& word : split(list, ',')) {
    std::optional<std::string> gpu;
    if (prefix.empty())
      gpu = leading_number(trim(word));
    else if (word.starts_with(prefix))
      gpu = word;
    if (!gpu) break;
    if (std::find(gpus.begin(), gpus.end(), *gpu) != gpus.end()) return {};
    gpus.push_back(*gpu);
  }
  return gpus;
}

}  // namespace

int visible_gpus() {
  const char* const named = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!named) {
    std::error_code no_driver;
    const std::filesystem::directory_iterator gpus("/proc/driver/nvidia/gpus", no_driver);
    return no_driver ? 0 : static_cast<int>(std::distance(gpus, {}));
  }
  return static_cast<int>(named_gpus(named).size());
}

}  // namespace megalith
