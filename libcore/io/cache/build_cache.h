#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/io/files/file.h"

namespace megalith {

/// The folder for files that can be made again at any time: $MEGALITH_CACHE_DIR, else
/// $XDG_CACHE_HOME/megalith, else ~/.cache/megalith; empty if none of these is set. $XDG_CACHE_HOME and $HOME
/// count only if they are absolute (XDG Base Directory Specification).
std::string cache_folder();

/// One file of that folder, made from other files and used instead of them in later runs. Its name says what
/// it was made from, so it is never out of date: changed files have another name. A folder that cannot be
/// read or written counts as empty, and so does one in which users other than this one and root may put
/// files: the folder and its files must belong to one of these two and not be writable for others, nor may
/// the folders above it (except those with the sticky bit). Processes may read and write the same file at
/// once.
class CachedFile {
 public:
  /// `form` is the version, from 1, of the layout of a `kind`; it is part of the name, so no other version is
  /// ever read. `source` is the SHA-256 of what the contents are made from, in 64 digits.
  CachedFile(std::string_view kind, int form, std::string source)
      : CachedFile(cache_folder(), false, kind, form, std::move(source)) {}
  /// The same in the folder that the option --data-cache-path named; empty if there is none. A folder in
  /// which others may write causes a warning.
  CachedFile(const std::string& folder, std::string_view kind, int form, std::string source)
      : CachedFile(folder, true, kind, form, std::move(source)) {}

  /// What was stored, as a view of the mapped file, at a multiple of 64 bytes. It does not change while in
  /// use: a cached file is replaced, never modified.
  class Contents {
   public:
    explicit Contents(MappedFile file, size_t from) : file_(std::move(file)), from_(from) {}
    std::string_view text() const { return file_.text().substr(from_); }

   private:
    MappedFile file_;
    size_t from_;
  };
  /// The contents if they are there and whole, else null. A damaged file is noted in the log.
  std::shared_ptr<const Contents> load() const;
  /// Silently does nothing if the folder cannot be written (but warns about a named folder in which others
  /// may write). Removes older versions made from the same source, and what killed processes left in the
  /// folder.
  void store(std::string_view contents) const;

  const std::string& path() const { return path_; }  // empty if there is no folder

 private:
  CachedFile(const std::string& folder, bool named, std::string_view kind, int form, std::string source);
  /// Whether others may write in the file's folder or in one above it; a warning then says that it "is not
  /// …".
  bool is_open(const char* used) const;

  bool named_ = false;  // by an option, else by the environment
  std::string source_, path_;
  std::vector<std::string> older_;  // paths
};

}  // namespace megalith
