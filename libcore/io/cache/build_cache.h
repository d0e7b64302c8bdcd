#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/io/files/file.h"

namespace megalith {

/// The folder for files that can be rebuilt at any time: $MEGALITH_CACHE_DIR, else $XDG_CACHE_HOME/megalith,
/// else ~/.cache/megalith; empty if none of these variables, nor $HOME, is set. $XDG_CACHE_HOME and $HOME
/// count only if they are absolute (XDG Base Directory Specification).
std::string cache_folder();

/// A file in a cache folder, made from source files and used instead of them in later runs. Its name holds a
/// hash of the sources, so it is never out of date: changed sources give another name. A folder that cannot
/// be read or written counts as empty. So does a folder in which other users could place files: the folder,
/// its files and all folders above it must belong to this user or root and must not be writable for others
/// (folders above it that have the sticky bit may be). Several processes may read and write the same file at
/// once.
class CachedFile {
 public:
  /// A file in cache_folder(). `kind` says what the file holds; `form` is the version of its layout, from 1.
  /// Both are part of the file's name, so that a file of another version is never read. `source` is the
  /// SHA-256 of what the contents are made from, in 64 hexadecimal digits.
  CachedFile(std::string_view kind, int form, std::string source)
      : CachedFile(cache_folder(), false, kind, form, std::move(source)) {}
  /// A file in `folder`, which the option --data-cache-path named; empty: nothing is cached. If others may
  /// write in the folder, a warning says so.
  CachedFile(const std::string& folder, std::string_view kind, int form, std::string source)
      : CachedFile(folder, true, kind, form, std::move(source)) {}

  /// The stored bytes, as a view of the mapped file that begins at a multiple of 64 bytes. They do not change
  /// while in use: a cached file is replaced, never modified.
  class Contents {
   public:
    explicit Contents(MappedFile file, size_t from) : file_(std::move(file)), from_(from) {}
    std::string_view text() const { return file_.text().substr(from_); }

   private:
    MappedFile file_;
    size_t from_;
  };
  /// The contents; null if they are not in the cache or are damaged. A damaged file causes a warning.
  std::shared_ptr<const Contents> load() const;
  /// Stores the contents. If the folder cannot be written, does nothing and reports no error; a folder from
  /// --data-cache-path in which others may write causes a warning. Also removes files of older versions with
  /// the same source, and temporary files that killed processes left in the folder.
  void store(std::string_view contents) const;

  const std::string& path() const { return path_; }  // empty if there is no folder

 private:
  CachedFile(const std::string& folder, bool named, std::string_view kind, int form, std::string source);
  /// Whether others may write in the file's folder or in a folder above it. If so, a warning says that the
  /// file "is not `used`".
  bool is_open(const char* used) const;

  bool named_ = false;  // whether an option named the folder; otherwise the environment did
  std::string source_, path_;
  std::vector<std::string> older_;  // paths that this file had with smaller values of `form`
};

}  // namespace megalith
