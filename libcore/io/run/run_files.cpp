#include "libcore/io/run/run_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// Whether `path` is itself a link, with or without a slash at its end.
bool is_link(const std::string& path) {
  std::error_code error;
  return fs::is_symlink((fs::path(path) / "").parent_path(), error);
}

bool lies_in(const std::string& path, const std::string& folder) {
  return path.starts_with(folder + "/");
}

/// Whether a name matches the pattern, in which a single "*" stands for any text.
bool fits(std::string_view name, std::string_view pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  return name.size() + 1 >= pattern.size() && name.starts_with(pattern.substr(0, star)) &&
         name.ends_with(pattern.substr(star + 1));
}

/// The folder of a checkpoint that `path` is or lies in; empty if there is none.
std::string checkpoint_around(const fs::path& path) {
  constexpr std::string_view kName = "iter_";
  constexpr size_t kDigits = 7;  // at least: other folders may be named iter_2
  std::error_code error;
  for (fs::path at = path; at.has_relative_path(); at = at.parent_path()) {
    const std::string name = at.filename().string();
    if (name.starts_with(kName) && name.size() >= kName.size() + kDigits &&
        name.find_first_not_of("0123456789", kName.size()) == std::string::npos &&
        fs::is_directory(at, error))
      return at.string();
  }
  return {};
}

}  // namespace

std::string real_path(const std::string& path) {
  std::error_code error;
  fs::path there = (fs::absolute(path, error) / "").parent_path();
  // Follows a link whose target does not exist yet, which weakly_canonical() would not follow.
  constexpr int kMostLinks = 40;  // Linux's limit
  for (int links = 0; links < kMostLinks && !fs::exists(there, error) && fs::is_symlink(there, error);
       ++links)
    there = there.parent_path() / fs::read_symlink(there, error);
  error.clear();
  const fs::path real = fs::weakly_canonical(there, error);
  return error ? path : real.string();
}

/// As real_path(), of an input that exists. Resolves a folder once for consecutive inputs that lie in it.
std::string RunFiles::real_input(const std::string& path, bool is_link) {
  const fs::path whole(path);
  const std::string name = whole.filename().string();
  if (is_link || name.empty() || name == "." || name == "..") return real_path(path);
  const std::string folder = whole.has_parent_path() ? whole.parent_path().string() : ".";
  if (last_folder_ != folder) {
    last_real_folder_ = real_path(folder);
    last_folder_ = folder;
  }
  return concat(last_real_folder_, last_real_folder_.ends_with('/') ? "" : "/", name);
}

/// Adds one input, unless nothing is there. Returns whether it is a folder.
bool RunFiles::add_input(std::string_view option, const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return false;
  const bool is_link = S_ISLNK(info.st_mode);
  if (is_link && ::stat(path.c_str(), &info) != 0) return false;
  inputs_.push_back({.option = std::string(option),
                     .path = path,
                     .real = real_input(path, is_link),
                     .file = std::pair(info.st_dev, info.st_ino)});
  return S_ISDIR(info.st_mode);
}

void RunFiles::reads(std::string_view option, const std::string& path) {
  if (path.empty() || path == "-" || !add_input(option, path)) return;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.is_regular_file(error)) add_input(option, entry.path().string());
}

void RunFiles::reads(std::string_view option, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) reads(option, path);
}

void RunFiles::reads_dataset(std::string_view option, const std::string& prefix) {
  for (const char* const end : {".bin", ".idx", ".json"}) reads(option, prefix + end);
}

void RunFiles::keeps(std::string_view option, const std::string& folder,
                     std::span<const std::string_view> names) {
  if (folder.empty()) return;
  kept_.push_back({std::string(option), folder, real_path(folder), {names.begin(), names.end()}});
}

/// Whether an output with this path would replace one of the protected files. True also for the folder itself
/// and for all folders above it, since such an output would replace the folder.
bool RunFiles::Kept::holds(const std::string& real_output) const {
  return real_output == real || lies_in(real, real_output) || holds_within(real_output);
}

/// Whether the path is one of the protected files, or lies below one.
bool RunFiles::Kept::holds_within(const std::string& real_output) const {
  if (!lies_in(real_output, real)) return false;
  const std::string_view inside = std::string_view(real_output).substr(real.size() + 1);
  const std::string_view first = inside.substr(0, inside.find('/'));
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return fits(first, name); });
}

void RunFiles::writes(std::string_view option, const std::string& path, OutputKind kind) {
  if (!path.empty()) outputs_.push_back({std::string(option), path, real_path(path), kind});
}

void RunFiles::writes_dataset(std::string_view option, const std::string& prefix) {
  for (const char* const end : {".bin", ".idx"}) writes(option, prefix + end);
}

void RunFiles::replaces_folder(std::string_view option, const std::string& path) {
  if (path.empty()) return;
  outputs_.push_back({.option = std::string(option), .path = path, .real = real_path(path), .folder = true});
}

void RunFiles::fills_folder(std::string_view option, const std::string& path) {
  if (!path.empty()) filled_.push_back({std::string(option), path, real_path(path)});
}

/// Why the output cannot get its path; empty if it can.
std::string RunFiles::refusal(const Named& output) {
  if (output.folder && is_link(output.path))
    return concat(
        output.option, ' ', quote(output.path),
        " is a link, whose name no new folder can take; give the folder that it leads to, or another "
        "name");
  struct stat info {};
  if (output.folder || ::stat(output.path.c_str(), &info) != 0) return {};
  const std::string what = kind_that_is_not(output.kind, info.st_mode);
  return what.empty() ? what
                      : concat(output.option, ' ', quote(output.path), " is ", what,
                               "; wanted a file, or a name that is free");
}

/// Whether writing the output would change the other, or replace it. A device keeps no bytes, so any number
/// of outputs may be written to it.
bool RunFiles::coincide(const Named& output, const Named& other) {
  if (output.device) return false;
  if (output.folder && lies_in(other.real, output.real)) return true;
  return output.real == other.real || (output.file && output.file == other.file);
}

/// Adds a problem for each folder to fill that lies in what others hold, and for each output in a checkpoint.
void RunFiles::check_folders(std::vector<std::string>& problems) const {
  for (const Named& output : filled_) {
    const auto kept = std::find_if(kept_.begin(), kept_.end(),
                                   [&](const Kept& folder) { return folder.holds_within(output.real); });
    if (kept != kept_.end())
      problems.push_back(concat(output.option, ' ', quote(output.path), " lies in what ", kept->option, ' ',
                                quote(kept->path), " holds; give another folder"));
  }
  if (!problems.empty()) return;  // these name a checkpoint that is also an input
  for (const std::vector<Named>* outputs : {&outputs_, &filled_})
    for (const Named& output : *outputs)
      if (const std::string checkpoint = checkpoint_around(output.real); !checkpoint.empty())
        problems.push_back(concat(output.option, ' ', quote(output.path), " lies in the checkpoint ",
                                  quote(checkpoint), ", which it would change; give another name"));
}

std::set<std::pair<dev_t, ino_t>> RunFiles::written_files() const {
  std::set<std::pair<dev_t, ino_t>> files;
  for (const Named& output : outputs_) {
    struct stat info {};
    if (::stat(output.path.c_str(), &info) == 0) files.emplace(info.st_dev, info.st_ino);
  }
  return files;
}

void RunFiles::check() const {
  std::vector<std::string> problems;
  std::vector<Named> outputs = outputs_;
  for (Named& output : outputs) {
    struct stat info {};
    if (::stat(output.path.c_str(), &info) != 0) continue;
    output.file = std::pair(info.st_dev, info.st_ino);
    output.device = S_ISCHR(info.st_mode);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Named& output = outputs[i];
    const auto complain = [&](const char* is, const Named& other) {
      problems.push_back(concat(output.option, ' ', quote(output.path), is, other.option,
                                other.path == output.path ? "" : " " + quote(other.path),
                                "; give it another name"));
    };
    if (std::string why = refusal(output); !why.empty()) problems.push_back(std::move(why));
    const auto input = std::find_if(inputs_.begin(), inputs_.end(),
                                    [&](const Named& named) { return coincide(output, named); });
    const auto kept = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& folder) {
      return !output.device && folder.holds(output.real);
    });
    if (input != inputs_.end())
      complain(output.folder && output.real != input->real ? " would be replaced, and holds the input of "
                                                           : " is also an input, of ",
               *input);
    else if (kept != kept_.end())
      problems.push_back(concat(output.option, ' ', quote(output.path), " is, or lies in, what ",
                                kept->option, ' ', quote(kept->path), " holds; give it another name"));
    for (size_t j = 0; j < i; ++j)
      if (coincide(output, outputs[j])) complain(" is also an output, of ", outputs[j]);
  }
  check_folders(problems);
  if (!problems.empty()) fail(ErrorKind::kUsage, join(problems, "\n  "));
}

}  // namespace megalith
