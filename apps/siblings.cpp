#include "apps/siblings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <system_error>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/shell_word.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "megalith-";

std::string read_all(FILE* file) {
  std::string text;
  std::array<char, 1 << 14> buffer{};
  while (file) {
    const size_t count = std::fread(buffer.data(), 1, buffer.size(), file);
    if (count == 0) break;
    text.append(buffer.data(), count);
  }
  return text;
}

/// Whether a completion script offers "--NAME" as a whole word.
bool offers(const std::string& script, const std::string& name) {
  const std::string word = "--" + name;
  for (size_t at = script.find(word); at != std::string::npos; at = script.find(word, at + 1)) {
    const char after = at + word.size() < script.size() ? script[at + word.size()] : ' ';
    if (std::isalnum(static_cast<unsigned char>(after)) == 0 && after != '-') return true;
  }
  return false;
}

/// Another program and the options that it offers.
struct Sibling {
  std::string app, script;  // "megalith-convert" and its completion script
};

/// The other programs in this program's folder. The first call starts each of them once; later calls reuse
/// their scripts.
const std::vector<Sibling>& siblings() {
  static const std::vector<Sibling> kAll = [] {
    std::vector<Sibling> found;
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    if (error) return found;  // no error: only a hint will be missing
    for (const std::string& app : find_apps(self.parent_path()))
      if (const fs::path program = app_path(self.parent_path(), app); program != self)
        found.push_back({kPrefix + app, read_all(ask_app(program, "--help-bash-completion").get())});
    return found;
  }();
  return kAll;
}

}  // namespace

fs::path own_folder() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) fail(ErrorKind::kIo, "/proc/self/exe: ", error.message());
  return self.parent_path();
}

std::vector<std::string> find_apps(const fs::path& folder) {
  std::vector<std::string> apps;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && ::access(entry.path().c_str(), X_OK) == 0 &&
        entry.is_regular_file(error))
      apps.push_back(name.substr(std::strlen(kPrefix)));
  }
  std::sort(apps.begin(), apps.end());
  return apps;
}

fs::path app_path(const fs::path& folder, const std::string& app) {
  return folder / (kPrefix + app);
}

Pipe ask_app(const fs::path& program, const std::string& option) {
  return {::popen(("exec " + shell_word(program.string()) + " " + option).c_str(), "r"), ::pclose};
}

std::string who_has(const std::string& option) {
  const std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  if (name.empty()) return {};
  std::vector<std::string> having;
  for (const Sibling& sibling : siblings())
    if (offers(sibling.script, name)) having.push_back(sibling.app);
  if (having.empty()) return {};
  std::string list = having.front();
  for (size_t i = 1; i < having.size(); ++i) list += (i + 1 < having.size() ? ", " : " and ") + having[i];
  return "; " + list + (having.size() == 1 ? " has it" : " have it");
}

}  // namespace megalith
