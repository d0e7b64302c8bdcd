#include "libcore/io/cache/build_cache.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <filesystem>
#include <limits>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file_calls.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "MGTCACHE";

struct alignas(64) Header {  // aligned, so that the contents that follow are aligned, too
  std::array<char, 8> magic;
  uint64_t bytes;  // bytes of the contents, which follow the header
  uint64_t hash;   // XXH64 of the contents
  std::array<uint64_t, 5> zeros;
  std::array<char, 64> source;
};

Header header_of(uint64_t bytes, uint64_t hash, std::string_view source) {
  Header header{.magic = {}, .bytes = bytes, .hash = hash, .zeros = {}, .source = {}};
  std::memcpy(header.magic.data(), kMagic.data(), kMagic.size());
  std::memcpy(header.source.data(), source.data(), std::min(source.size(), header.source.size()));
  return header;
}

/// Whether only this user and root can write a file or folder, given lstat()'s result. (Must not be called
/// for a link, whose mode lets everyone write: callers pass real paths.)
bool is_closed(const struct stat& file) {
  return (file.st_uid == ::geteuid() || file.st_uid == 0) && (file.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// The first folder, from `path` upward, in which other users may replace files, so that files in `path`
/// cannot be trusted. Empty if there is no such folder, or if `path` does not exist. `above`: the files are
/// in a folder below `path`.
std::string open_folder(const std::string& path, bool above = false) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return {};
  for (fs::path folder = real;; folder = folder.parent_path(), above = true) {
    struct stat found {};
    if (::lstat(folder.c_str(), &found) != 0) return {};
    const bool sticky = above && (found.st_mode & S_ISVTX) != 0;
    if (!is_closed(found) && !sticky) return folder.string();
    if (folder == folder.parent_path()) return {};
  }
}

bool is_our_file(const std::string& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) && is_closed(found);
}

/// Whether `name` has the form KIND-FORM-SHA256 of CachedFile's names.
bool is_cached_name(std::string_view name) {
  constexpr size_t kDigits = 64;
  if (name.size() < kDigits + 2) return false;
  const std::string_view source = name.substr(name.size() - kDigits);
  const std::string_view front = name.substr(0, name.size() - kDigits - 1);
  const size_t dash = front.rfind('-');
  return name[front.size()] == '-' && dash != std::string_view::npos && dash > 0 &&
         source.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         parse_int(front.substr(dash + 1)).has_value();
}

/// Whether a temporary file was abandoned by its writer, which on a file system without nameless files keeps
/// that name as long as it computes the contents. It was abandoned if nobody wrote to it for an hour, or for
/// ten minutes if no process here has the writer's number (the writer may run on another machine).
bool is_left(const fs::path& file, int64_t process) {
  constexpr auto kPause = std::chrono::minutes(10), kLong = std::chrono::minutes(60);
  const bool gone = process > 0 && process <= std::numeric_limits<pid_t>::max() &&
                    ::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH;
  std::error_code error;
  const auto written = fs::last_write_time(file, error);
  return !error && fs::file_time_type::clock::now() - written > (gone ? kPause : kLong);
}

/// Removes the temporary files of cached files that killed processes left behind. If a living process still
/// needs such a file, it only fails to cache its result.
void remove_left_by_dead(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto temporary = parse_temporary_name(entry.path().filename().string());
    if (temporary && is_cached_name(temporary->output) && is_left(entry.path(), temporary->process))
      found.push_back(entry.path());
  }
  for (const fs::path& path : found) ::unlink(path.c_str());
}

/// Whether this is the first call with these words in this process. A run may have thousands of cached files
/// in one folder.
bool is_first(const std::string& words) {
  static std::mutex mutex;
  static std::set<std::string> before;
  const std::lock_guard lock(mutex);
  return before.insert(words).second;
}

/// Creates a folder and the missing folders above it, accessible only to this user, whatever the umask is.
void make_own_folders(const fs::path& folder) {
  if (fs::exists(folder)) return;
  make_own_folders(parent_or_here(folder));
  if (::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    fail(ErrorKind::kIo, folder.string(), ": cannot create folder: ", std::strerror(errno));
}

}  // namespace

std::string cache_folder() {
  if (std::string folder = environment("MEGALITH_CACHE_DIR"); !folder.empty()) return folder;
  if (const std::string folder = environment("XDG_CACHE_HOME"); folder.starts_with('/'))
    return folder + "/megalith";
  const std::string home = environment("HOME");
  return home.starts_with('/') ? home + "/.cache/megalith" : "";
}

Keeping keeping_in(const std::string& folder) {
  fs::path there = folder;
  while (!file_exists(there.string()) && there != parent_or_here(there)) there = parent_or_here(there);
  struct statfs system {};
  std::error_code ignored;
  if (!fs::is_directory(there, ignored) || ::access(there.c_str(), W_OK | X_OK) != 0 ||
      !open_folder(there.string(), there != folder).empty() || ::statfs(there.c_str(), &system) != 0)
    return Keeping::kNot;
  const auto type = static_cast<unsigned>(system.f_type);
  return type == TMPFS_MAGIC || type == RAMFS_MAGIC ? Keeping::kInMemory : Keeping::kOnDisk;
}

CachedFile::CachedFile(const std::string& folder, bool named, std::string_view kind, int form,
                       std::string source)
    : named_(named), source_(std::move(source)) {
  if (folder.empty()) return;
  const auto path_of = [&](int any) { return concat(folder, "/", kind, "-", any, "-", source_); };
  path_ = path_of(form);
  for (int older = 1; older < form; ++older) older_.push_back(path_of(older));
}

bool CachedFile::is_open(const char* used) const {
  const std::string folder = open_folder(parent_or_here(path_).string());
  if (folder.empty()) return false;
  const std::string reason =
      concat("others may write in ", folder, "; chmod go-w ", folder, ", or name another folder ");
  if (named_)
    warn_of_folder(used, reason + "with --data-cache-path");
  else
    warn(path_, ": is not ", used, ": ", reason, "in MEGALITH_CACHE_DIR");
  return true;
}

void CachedFile::warn_of_folder(const char* used, const std::string& reason) const {
  const std::string beginning = concat(parent_or_here(path_).string(), ": its files are not ", used, ": ");
  if (is_first(beginning)) warn(beginning, reason);
}

namespace {
/// xxh64() of contents that may be long: a signal ends it.
uint64_t hash_of(std::string_view contents) {
  constexpr size_t kWithoutPause = size_t{1} << 26;
  Xxh64 hash;
  for (; !contents.empty(); contents.remove_prefix(std::min(kWithoutPause, contents.size()))) {
    stop_if_asked();
    hash.update(contents.data(), std::min(kWithoutPause, contents.size()));
  }
  return hash.digest();
}
}  // namespace

std::shared_ptr<const CachedFile::Contents> CachedFile::load() const {
  if (path_.empty()) return nullptr;
  try {
    if (!file_exists(path_)) return nullptr;
    if (is_open("used")) return nullptr;
    if (!is_our_file(path_)) {
      warn(path_, ": is not used: it is a link, or not only of this user; remove it");
      return nullptr;
    }
    MappedFile file(path_, MappedPages::kAll);
    Header found{}, right{};
    if (file.size() >= sizeof found) {
      std::memcpy(&found, file.data(), sizeof found);
      const std::string_view contents = file.text().substr(sizeof found);
      right = header_of(contents.size(), hash_of(contents), source_);
      if (std::memcmp(&found, &right, sizeof found) == 0)
        return std::make_shared<const Contents>(std::move(file), sizeof found);
    }
    warn(path_, ": the cached file is damaged; it is made again");
  } catch (const Error&) {
    // A file that cannot be read counts as not cached.
  }
  return nullptr;
}

bool CachedFile::is_there() const {
  return !path_.empty() && is_our_file(path_) && open_folder(parent_or_here(path_).string()).empty();
}

void CachedFile::store(std::string_view contents) const {
  Writer writer(*this);
  writer.write(contents.data(), contents.size());
  writer.commit();
}

// Caching is optional, so what fails here is not an error.
CachedFile::Writer::Writer(const CachedFile& file) : file_(file) {
  if (file.path_.empty()) return;
  try {
    const fs::path folder = parent_or_here(file.path_);
    make_own_folders(folder);
    if (file.named_ ? file.is_open("kept") : !open_folder(folder.string()).empty()) return;
    if (is_first("remove " + folder.string())) remove_left_by_dead(folder);
    out_ = std::make_unique<AtomicFile>(file.path_);
    if (::chmod(out_->open_path().c_str(), S_IRUSR | S_IWUSR) != 0) out_.reset();
    const Header later{};
    if (out_) out_->write(&later, sizeof later);
  } catch (const std::exception& error) {
    drop(error);
  }
}

void CachedFile::Writer::write(const void* data, size_t bytes) {
  if (!out_) return;
  try {
    out_->write(data, bytes);
    hash_.update(data, bytes);
  } catch (const std::exception& error) {
    drop(error);
  }
}

void CachedFile::Writer::drop(const std::exception& error) {
  out_.reset();
  if (file_.named_) file_.warn_of_folder("kept", error.what());
}

bool CachedFile::Writer::read_back(uint64_t offset, void* out, size_t bytes) {
  try {
    if (out_) out_->read_back(sizeof(Header) + offset, out, bytes);
  } catch (const std::exception& error) {
    drop(error);
  }
  return out_ != nullptr;
}

bool CachedFile::Writer::commit() {
  if (!out_) return false;
  try {
    const Header header = header_of(out_->size() - sizeof(Header), hash_.digest(), file_.source_);
    out_->write_at(0, &header, sizeof header);
    // Not synced: thousands of files would wait for the disk one by one. load() finds a file that a power
    // failure damaged by its hash.
    out_->flush();
    out_->publish();
    for (const std::string& path : file_.older_) ::unlink(path.c_str());  // usually there are none
    return true;
  } catch (const std::exception& error) {
    drop(error);
    return false;
  }
}

}  // namespace megalith
