#include "libcore/dialects/paddle/paddle_dataset.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/stat.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/torch/zip_archive.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/dialects/paddle/npy.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIds = "_ids.npy", kLengths = "_idx.npz";
constexpr std::string_view kMade = ".from_npy-";  // in the created pair's name, between NAME and the hash

std::optional<IndexedDType> same_type(const NpyArray& ids) {
  if (ids.kind == 'u' && ids.width == 2) return IndexedDType::kU16;
  if (ids.kind == 'i' && ids.width == 4) return IndexedDType::kI32;
  if (ids.kind == 'i' && ids.width == 8) return IndexedDType::kI64;
  return std::nullopt;
}

std::vector<int32_t> lengths_of(const std::string& path, size_t ids) {
  const MappedFile file(path);
  const ZipArchive archive(file.text(), path);
  const ZipArchive::Member* const member = archive.find("lens.npy");
  if (!member) fail(ErrorKind::kData, path, ": has no member \"lens\", the tokens of each document");
  // Also checks the members that are not used: if one is damaged, the others cannot be trusted.
  for (const ZipArchive::Member& other : archive.members()) archive.checked_bytes_of(other);
  const NpyArray lens = parse_npy(archive.checked_bytes_of(*member), path + ": lens");
  std::vector<int32_t> lengths;
  int64_t sum = 0;
  for (size_t i = 0; i < lens.size(); ++i) {
    const int64_t length = lens.at(i);
    if (length < 0 || length > INT32_MAX)
      fail(ErrorKind::kData, path, ": lens: document ", i, " has ", length, " tokens");
    lengths.push_back(static_cast<int32_t>(length));
    sum += length;
  }
  if (sum != static_cast<int64_t>(ids))
    fail(ErrorKind::kData, path, ": lens adds up to ", sum, " tokens, but the ", kIds, " next to it has ",
         ids, "; the two files do not belong together");
  return lengths;
}

/// Identifies a file's contents: the text changes when the file is rewritten or replaced. Times are compared
/// only for equality, because a copy may have an older date than the file that it replaced (cp -p).
std::string identity(const std::string& path) {
  std::error_code error;
  const std::string real = fs::canonical(path, error).string();
  struct stat file {};
  if (error || ::stat(real.c_str(), &file) != 0)
    fail(ErrorKind::kNoInput, path, ": cannot be read: ", error ? error.message() : std::strerror(errno),
         "; wanted NAME", kIds, " with NAME", kLengths, " next to it");
  const auto time = [](const timespec& t) { return concat(' ', t.tv_sec, '.', t.tv_nsec); };
  return concat(real, '\0', file.st_size, time(file.st_mtim), time(file.st_ctim), '\0');
}

/// The name of the pair that is created from these arrays in their present state. After a change of the
/// arrays the name is another one. No dataset of the user has this name.
std::string made_name(const std::string& stem) {
  const std::string sources = identity(concat(stem, kIds)) + identity(concat(stem, kLengths));
  return concat(fs::path(stem).filename().string(), kMade, hex64(xxh64(sources)));
}

/// Whether a pair's name has the form that made_name() gives for these arrays, in their present or an earlier
/// state.
bool is_made_of(const std::string& pair, const std::string& stem) {
  return pair.starts_with(concat(stem, kMade)) &&
         parse_hex64(std::string_view(pair).substr(stem.size() + kMade.size())).has_value();
}

void make_pair(const std::string& stem, const std::string& prefix) {
  const std::string ids_path = concat(stem, kIds), lengths_path = concat(stem, kLengths);
  const MappedFile file(ids_path);
  const NpyArray ids = parse_npy(file.text(), ids_path);
  const auto type = same_type(ids);
  if (!type)
    fail(ErrorKind::kData, ids_path, ": holds ", ids.kind == 'i' ? "signed" : "unsigned", " integers of ",
         8 * ids.width, " bits; wanted uint16, int32 or int64");
  const std::vector<int32_t> lengths = lengths_of(lengths_path, ids.size());
  IndexedDatasetWriter writer(prefix, *type);
  writer.add_ids({ids.bytes.data(), ids.bytes.size()});
  writer.end_documents(lengths, std::vector<int32_t>(lengths.size(), 1));
  if (!prefix.ends_with(made_name(stem)))
    fail(ErrorKind::kData, ids_path, " or ", lengths_path,
         ": was changed while it was read; run again when both are complete");
  writer.finish();
  log(prefix, ".bin, .idx: made of ", ids_path, " and ", lengths_path, ", ", format_count(writer.documents()),
      " documents, ", format_count(writer.tokens()), " tokens");
}

/// Creates the pair and returns true. If another rank is creating it, waits a little and returns false, and
/// the caller tries again.
bool make_or_wait(const std::string& stem, const std::string& prefix) {
  constexpr std::chrono::milliseconds kLook(50);
  try {
    make_pair(stem, prefix);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kComm) throw;
    std::this_thread::sleep_for(kLook);
    return false;
  }
}

/// The paths of those files of the folder that end with `end`, without this ending.
std::vector<std::string> stems(const std::string& folder, std::string_view end) {
  std::vector<std::string> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (path.ends_with(end) && path.size() > end.size())
      out.push_back(path.substr(0, path.size() - end.size()));
  }
  std::sort(out.begin(), out.end());
  return out;
}

[[noreturn]] void refuse_count(const std::string& folder, const std::vector<std::string>& pairs,
                               const std::vector<std::string>& arrays) {
  std::vector<std::string> found;
  for (const std::string& pair : pairs) found.push_back(pair + ".idx");
  for (const std::string& stem : arrays) found.push_back(concat(stem, kIds));
  fail(found.empty() ? ErrorKind::kNoInput : ErrorKind::kUsage, "--input-dir ", folder, ": holds ",
       found.empty() ? "no dataset" : concat(found.size(), " datasets (", join(found, ", "), ")"),
       "; wanted one, NAME.bin with NAME.idx or NAME", kIds, " with NAME", kLengths,
       ": move the others away, or name what is to be read with --data-path, which takes pairs");
}

}  // namespace

std::string dataset_of_folder(const std::string& folder, const std::string& cache) {
  if (!fs::is_directory(folder))
    fail(ErrorKind::kNoInput, "--input-dir ", folder, ": is not a folder; wanted one with a dataset");
  const std::vector<std::string> arrays = stems(folder, kIds);
  std::vector<std::string> pairs = stems(folder, ".idx");
  std::erase_if(pairs, [&](const std::string& pair) {
    return std::any_of(arrays.begin(), arrays.end(),
                       [&](const std::string& stem) { return is_made_of(pair, stem); });
  });
  if (arrays.size() + pairs.size() != 1) refuse_count(folder, pairs, arrays);
  if (!pairs.empty()) return pairs.front();
  const std::string& stem = arrays.front();
  const fs::path beside = cache.empty() ? fs::path(stem).parent_path() : fs::path(cache);
  std::string prefix = (beside / made_name(stem)).string();
  const auto is_made = [&] { return file_exists(prefix + ".bin") && file_exists(prefix + ".idx"); };
  while (!is_made() && !make_or_wait(stem, prefix)) {
  }
  return prefix;
}

}  // namespace megalith
