#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/terminal.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/preprocess/preprocess_stages.h"
#include "libcore/io/streams/decoder.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// Replaces a pattern by the files that match it, in byte order. If a file has the pattern itself as its
/// name, that file is meant.
std::vector<std::string> expand(const std::string& input) {
  if (input.find_first_of("*?[") == std::string::npos || file_exists(input)) return {input};
  glob_t found{};
  const int status = ::glob(input.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (status != 0) fail(ErrorKind::kNoInput, input, ": no file matches");
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Whether a file in an input folder is used: .json or .jsonl, perhaps compressed, and not hidden.
bool is_corpus_name(std::string_view name) {
  if (name.starts_with('.')) return false;
  for (const std::string_view packed : {".gz", ".zst", ".bz2", ".xz"}) {
    if (!name.ends_with(packed)) continue;
    name.remove_suffix(packed.size());
    break;
  }
  return name.ends_with(".json") || name.ends_with(".jsonl");
}

/// Device and inode of each file and folder that was found below an input folder, so that it is found only
/// once, even if links to it are circular.
using RealFiles = std::set<std::pair<dev_t, ino_t>>;

bool is_new(const fs::path& path, RealFiles& seen) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && seen.emplace(info.st_dev, info.st_ino).second;
}

/// Adds the corpus files below a folder. Links are followed, but no file or folder is used twice: links may
/// be circular, or lead to one folder on several paths. Sets `any` if the folder holds a corpus file, even
/// one that was added before.
void add_files_below(const fs::path& folder, RealFiles& seen, std::vector<std::string>& paths, bool& any) {
  std::error_code reason;
  std::vector<fs::path> entries;
  for (auto entry = fs::directory_iterator(folder, reason); !reason && entry != fs::directory_iterator();
       entry.increment(reason))
    entries.push_back(entry->path());
  if (reason) fail(ErrorKind::kNoInput, folder.string(), ": cannot read the folder: ", reason.message());
  std::sort(entries.begin(), entries.end());
  for (const fs::path& path : entries) {
    if (fs::is_directory(path, reason)) {
      if (is_new(path, seen)) add_files_below(path, seen, paths, any);
      continue;
    }
    if (!is_corpus_name(path.filename().string()) || !fs::is_regular_file(path, reason) ||
        is_sidecar(path.string()))
      continue;
    any = true;
    if (is_new(path, seen))
      paths.push_back(path.string());
    else
      log("Passing over ", path.string(), ": it was already found under another name");
  }
}

/// The corpus files below a folder, in byte order of their paths. Leaves out the sidecars of datasets, and
/// files that were already found in another folder.
std::vector<std::string> files_below(const std::string& folder, RealFiles& seen) {
  std::vector<std::string> paths;
  bool any = false;
  add_files_below(folder, seen, paths, any);
  if (!any)
    fail(ErrorKind::kNoInput, folder,
         ": no .json or .jsonl file is in this folder (nor one compressed to .gz, .zst, .bz2 or .xz)");
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool is_compressed(const std::string& path) {
  std::array<char, 6> head{};
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;  // the error is reported when the file is read
  const ssize_t n = ::pread(fd, head.data(), head.size(), 0);
  ::close(fd);
  return n > 0 && make_decoder({head.data(), static_cast<size_t>(n)}) != nullptr;
}

InputFile look_at(const std::string& path) {
  struct stat info {};
  if (path != "-" && ::stat(path.c_str(), &info) != 0)
    fail(ErrorKind::kNoInput, path, ": cannot open: ", std::strerror(errno));
  if (path == "-" && ::fstat(STDIN_FILENO, &info) != 0)
    fail(ErrorKind::kNoInput, "stdin: cannot read: ", std::strerror(errno));
  log("Opening ", printable(path));
  if (path == "-" || !S_ISREG(info.st_mode)) return {.path = path, .pipe = true};
  return {.path = path,
          .size = static_cast<uint64_t>(info.st_size),
          .modified = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec,
          .compressed = is_compressed(path)};
}

}  // namespace

std::string shown_input(const std::string& path) {
  return path == "-" ? "stdin" : path;
}

std::vector<InputFile> look_at_inputs(const std::vector<std::string>& inputs) {
  std::vector<InputFile> files;
  RealFiles seen;  // only for files found in folders: a file that is named twice is used twice
  for (const std::string& input : inputs) {
    for (const std::string& path : expand(input)) {
      if (!fs::is_directory(path)) {
        files.push_back(look_at(path));
        continue;
      }
      for (const std::string& file : files_below(path, seen)) files.push_back(look_at(file));
    }
  }
  return files;
}

/// The size of the next batch. Batches become smaller towards the end of the last file, so that no worker
/// ends long after the others.
size_t DocumentSource::batch_bytes() const {
  constexpr size_t kMin = size_t{1} << 14;
  const size_t bytes = limits_.lines.bytes;
  const InputFile& file = files_[at_];
  const uint64_t consumed = reader_->input().consumed();
  if (limits_.workers == 1 || at_ + 1 < files_.size() || file.pipe || consumed > file.size) return bytes;
  return std::clamp<size_t>((file.size - consumed) / (2 * limits_.workers), std::min(kMin, bytes), bytes);
}

bool DocumentSource::next(DocumentBatch& batch, const std::function<void(size_t)>& grow) {
  for (; at_ < files_.size(); ++at_) {
    if (!reader_)
      reader_ = std::make_unique<LineReader>(files_[at_].path, limits_.lines, &interrupt_,
                                             std::exchange(from_, {}));
    reader_->close_batches_at(batch_bytes());
    const bool more = reader_->next(batch.lines, grow);
    batch.bytes = batch.lines.bytes();
    batch.consumed = finished_ + reader_->input().consumed();
    batch.decoder_memory = reader_->input().decoder_memory();
    batch.end = {.input = at_, .reader = batch.lines.end(), .finished = finished_};
    if (more) return true;
    finished_ = batch.consumed;
    reader_.reset();
  }
  return false;
}

}  // namespace megalith
