#include "libcore/io/build_cache.h"

#include <array>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/hash/xxh64.h"

namespace megalith {
namespace {

constexpr std::string_view kMagic = "MGTCACHE";

struct alignas(64) Header {  // so that what follows is aligned like this in memory
  std::array<char, 8> magic;
  uint64_t bytes;  // behind the header
  uint64_t hash;   // XXH64 of them
  std::array<uint64_t, 5> zeros;
};

Header header_of(std::string_view contents) {
  Header header{.magic = {}, .bytes = contents.size(), .hash = xxh64(contents), .zeros = {}};
  std::memcpy(header.magic.data(), kMagic.data(), kMagic.size());
  return header;
}

std::string from_environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

}  // namespace

std::string cache_folder() {
  if (const std::string folder = from_environment("MEGALITH_CACHE_DIR"); !folder.empty()) return folder;
  if (const std::string folder = from_environment("XDG_CACHE_HOME"); !folder.empty())
    return folder + "/megalith";
  const std::string home = from_environment("HOME");
  return home.empty() ? "" : home + "/.cache/megalith";
}

CachedFile::CachedFile(const std::string& folder, std::string_view kind, int form, uint64_t source) {
  if (folder.empty()) return;
  const auto path_of = [&](int any) { return concat(folder, "/", kind, "-", any, "-", hex64(source)); };
  path_ = path_of(form);
  for (int older = 1; older < form; ++older) older_.push_back(path_of(older));
}

std::shared_ptr<const CachedFile::Contents> CachedFile::load() const {
  if (path_.empty()) return nullptr;
  try {
    if (!file_exists(path_)) return nullptr;
    MappedFile file(path_, MappedPages::kAll);
    Header found{}, right{};
    if (file.size() >= sizeof found) {
      std::memcpy(&found, file.data(), sizeof found);
      right = header_of(file.text().substr(sizeof found));
      if (std::memcmp(&found, &right, sizeof found) == 0)
        return std::make_shared<const Contents>(std::move(file), sizeof found);
    }
    warn(path_, ": the cached file is damaged; it is made again");
  } catch (const Error&) {
    // Not readable: as if it were not there.
  }
  return nullptr;
}

void CachedFile::store(std::string_view contents) const {
  if (path_.empty()) return;
  try {
    make_directories(std::filesystem::path(path_).parent_path());
    const Header header = header_of(contents);
    AtomicFile file(path_);
    file.write(&header, sizeof header);
    file.write(contents);
    file.commit();
    for (const std::string& path : older_) ::unlink(path.c_str());  // mostly not there
  } catch (const Error&) {
    // A cache need not be kept.
  }
}

}  // namespace megalith
