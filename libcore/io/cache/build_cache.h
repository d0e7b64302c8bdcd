#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/io/files/file.h"

namespace megalith {

/// The folder for what can be made again at any time: $MEGALITH_CACHE_DIR, else $XDG_CACHE_HOME/megalith,
/// else ~/.cache/megalith; empty when none of them is set. $XDG_CACHE_HOME and $HOME count only when they
/// begin at the root (XDG Base Directory Specification: relative paths are to be ignored).
std::string cache_folder();

/// One file of that folder, made of other files and used instead of them in later runs. Its name says what it
/// was made of, so it is never out of date: changed files have another one. A folder that cannot be read or
/// written is as good as an empty one, and so is one in which others than this user and root may put files:
/// it and its files must belong to one of these two and be closed to the writing of others, as the folders
/// above it (but those with the sticky bit). Processes may read and write the same one at once.
class CachedFile {
 public:
  /// `form` counts from 1 how the contents of a `kind` are laid out, and is in the name, so that no other
  /// form is ever read; `source` is the SHA-256 of what they are made from, in 64 digits.
  CachedFile(std::string_view kind, int form, std::string source)
      : CachedFile(cache_folder(), false, kind, form, std::move(source)) {}
  /// The same in the folder that the option --data-cache-path named; empty: there is none. One in which
  /// others may write gets a warning.
  CachedFile(const std::string& folder, std::string_view kind, int form, std::string source)
      : CachedFile(folder, true, kind, form, std::move(source)) {}

  /// What was stored, as a view of the mapped file, at a multiple of 64 bytes. It stays as it is while in
  /// use, because a cached file is only ever replaced, never changed.
  class Contents {
   public:
    explicit Contents(MappedFile file, size_t from) : file_(std::move(file)), from_(from) {}
    std::string_view text() const { return file_.text().substr(from_); }

   private:
    MappedFile file_;
    size_t from_;
  };
  /// The contents, if they are there and whole, else null. Of a damaged file a line goes to the log.
  std::shared_ptr<const Contents> load() const;
  /// Quietly does nothing where it cannot be written (but for a named folder in which others may write).
  /// Removes what older forms kept of the same source, and what killed processes left in the folder.
  void store(std::string_view contents) const;

  const std::string& path() const { return path_; }  // empty: there is no folder

 private:
  CachedFile(const std::string& folder, bool named, std::string_view kind, int form, std::string source);
  /// Whether others may write in the file's folder, or in one above it; then a warning says that it "is not
  /// …".
  bool is_open(const char* used) const;

  bool named_ = false;  // by an option, else by the environment
  std::string source_, path_;
  std::vector<std::string> older_;  // paths
};

}  // namespace megalith
