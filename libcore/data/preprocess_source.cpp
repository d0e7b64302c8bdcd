#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <glob.h>
#include <sys/stat.h>

#include "libcore/base/error.h"
#include "libcore/data/preprocess_stages.h"

namespace megalith {
namespace {

/// A pattern that names no file itself stands for the files that match it, in byte order.
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

}  // namespace

std::vector<InputFile> look_at_inputs(const std::vector<std::string>& inputs) {
  std::vector<InputFile> files;
  for (const std::string& input : inputs) {
    for (const std::string& path : expand(input)) {
      struct stat info {};
      if (path != "-") {
        if (::stat(path.c_str(), &info) != 0)
          fail(ErrorKind::kNoInput, path, ": cannot open: ", std::strerror(errno));
        if (S_ISDIR(info.st_mode)) fail(ErrorKind::kNoInput, path, ": is a folder, wanted a file");
      }
      log("Opening ", path);
      const bool regular = S_ISREG(info.st_mode);
      files.push_back({path, regular ? static_cast<uint64_t>(info.st_size) : 0, !regular});
    }
  }
  return files;
}

bool DocumentSource::next(DocumentChunk& chunk, const std::function<void(size_t)>& grow) {
  for (; at_ < files_.size(); ++at_) {
    if (!reader_) reader_ = std::make_unique<LineReader>(files_[at_].path, limits_, &interrupt_);
    const bool more = reader_->next(chunk.lines, grow);
    chunk.consumed = finished_ + reader_->input().consumed();
    chunk.input = at_;
    if (more) return true;
    finished_ = chunk.consumed;
    reader_.reset();
  }
  return false;
}

}  // namespace megalith
