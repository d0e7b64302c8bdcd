#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"

namespace megalith {

/// The folder for files that can be rebuilt at any time: $MEGALITH_CACHE_DIR; if that is not set,
/// $XDG_CACHE_HOME/megalith; otherwise $HOME/.cache/megalith. Empty if none of these variables is set.
/// $XDG_CACHE_HOME and $HOME count only if they are absolute paths (XDG Base Directory Specification).
std::string cache_folder();

/// What becomes of files that are cached in a folder. kNot: nothing, because it cannot be written, or because
/// others may write in it. kInMemory: they are kept, but take memory (tmpfs).
enum class Keeping : uint8_t { kNot, kInMemory, kOnDisk };
/// What becomes of files in the folder of --data-cache-path, which need not exist yet.
Keeping keeping_in(const std::string& folder);

/// A file in a cache folder that is computed from source files and replaces them in later runs. Its name
/// contains a hash of the sources, so it is never out of date: changed sources give another name. A folder
/// that cannot be read or written counts as empty. So does a folder in which other users could place files:
/// this user or root must own the folder, its files and all folders above it, and nobody else may write in
/// them (except in a folder above with the sticky bit). Several processes may read and write the same file at
/// once.
class CachedFile {
 public:
  /// A file in cache_folder(). `kind` says what the file holds; `form` is the version of its layout, from 1.
  /// Both are part of the file's name, so that a file of another version is never read. `source` is the
  /// SHA-256 of the data from which the contents are computed, as 64 hexadecimal digits.
  CachedFile(std::string_view kind, int form, std::string source)
      : CachedFile(cache_folder(), false, kind, form, std::move(source)) {}
  /// A file in the folder that the option --data-cache-path names; if `folder` is empty, nothing is cached.
  /// Warns if other users may write in the folder, or if it cannot be written.
  CachedFile(const std::string& folder, std::string_view kind, int form, std::string source)
      : CachedFile(folder, true, kind, form, std::move(source)) {}

  /// A view of the stored bytes in the mapped file; its address is a multiple of 64. The bytes do not change
  /// while the view exists: a cached file is replaced, never modified.
  class Contents {
   public:
    explicit Contents(MappedFile file, size_t from) : file_(std::move(file)), from_(from) {}
    std::string_view text() const { return file_.text().substr(from_); }

   private:
    MappedFile file_;
    size_t from_;
  };
  /// Returns the contents, or null if they are not in the cache or are damaged. Warns of a damaged file.
  /// Throws Stopped (io/streams/stop_signal.h) if a StopSignal exists and receives a signal.
  std::shared_ptr<const Contents> load() const;
  /// Whether load() finds a file, which may be damaged. Does not warn.
  bool is_there() const;
  /// Stores the contents. Does nothing, and reports no error, if the folder cannot be written, or if other
  /// users may write in it; warns of a folder from --data-cache-path, once. Also removes files of older
  /// versions with the same source. A process's first call for a folder removes temporary files that killed
  /// processes left there at least ten minutes ago.
  void store(std::string_view contents) const;

  /// Stores contents that are written a part at a time, so that they need not be in memory as a whole. As
  /// store(), reports no error.
  class Writer {
   public:
    explicit Writer(const CachedFile& file);
    bool stores() const { return out_ != nullptr; }  // false: what is written is dropped
    void write(const void* data, size_t bytes);
    /// Reads contents that were written before; false if that fails.
    bool read_back(uint64_t offset, void* out, size_t bytes);
    /// Gives the file its name, without syncing it. Returns whether load() will find it: false if the folder
    /// cannot be written, or if others may write in it.
    bool commit();

   private:
    void drop(const std::exception& error);  // stores nothing any more

    const CachedFile& file_;
    Xxh64 hash_;
    std::unique_ptr<AtomicFile> out_;  // null: nothing is stored
  };

  const std::string& path() const { return path_; }  // empty if there is no cache folder

 private:
  CachedFile(const std::string& folder, bool named, std::string_view kind, int form, std::string source);
  /// Whether other users may write in the file's folder or in a folder above it. If they may, warns that the
  /// file "is not `used`".
  bool is_open(const char* used) const;
  /// Warns, once, that the files in this file's folder are not `used`.
  void warn_of_folder(const char* used, const std::string& reason) const;

  bool named_ = false;  // the folder is from an option, not the environment
  std::string source_, path_;
  std::vector<std::string> older_;  // the file's paths with smaller values of `form`
};

}  // namespace megalith
