#include "libcore/io/cache/hf_cache.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

std::string hub_folder() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})  // HUGGINGFACE_HUB_CACHE is the old name
    if (std::string hub = environment(name); !hub.empty()) return hub;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return home + "/hub";
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/huggingface/hub";
  return environment("HOME") + "/.cache/huggingface/hub";
}

bool is_hub_word(std::string_view word) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; };
  return !word.empty() && word.front() != '.' && word.front() != '-' &&
         std::all_of(word.begin(), word.end(), allowed);
}

}  // namespace

bool is_hub_id(const std::string& name) {
  const std::vector<std::string> words = split(name, '/');
  return words.size() <= 2 && std::all_of(words.begin(), words.end(), is_hub_word);
}

std::optional<std::string> hub_snapshot(const std::string& id) {
  if (!is_hub_id(id)) return std::nullopt;
  std::string name = "models--";
  for (const char c : id) name += c == '/' ? std::string("--") : std::string(1, c);
  const std::string model = hub_folder() + "/" + name, branch = model + "/refs/main";
  if (!file_exists(branch)) return std::nullopt;
  std::string snapshot = model + "/snapshots/" + std::string(trim(read_file(branch)));
  return file_exists(snapshot) ? std::optional(std::move(snapshot)) : std::nullopt;
}

std::string path_or_snapshot(const std::string& name) {
  return name.empty() || file_exists(name) ? name : hub_snapshot(name).value_or(name);
}

std::string hub_remedy(const std::string& name) {
  if (!is_hub_id(name)) return {};
  return concat(", and ", hub_folder(),
                " holds no Hugging Face model of this id; fetch it with `hf download ", name,
                "`, or give a path");
}

}  // namespace megalith
