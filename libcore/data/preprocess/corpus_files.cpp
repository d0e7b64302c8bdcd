#include "libcore/data/preprocess/corpus_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/stat.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/io/files/name_pattern.h"
#include "libcore/io/streams/decoder.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// Replaces a pattern by the files that match it, in byte order. If a file has the pattern itself as its
/// name, that file is meant.
std::vector<std::string> expand(const std::string& input) {
  if (!is_pattern(input) || file_exists(input)) return {input};
  std::vector<std::string> paths = paths_matching(input);
  if (paths.empty()) fail(ErrorKind::kNoInput, input, ": no file matches");
  return paths;
}

/// Whether a file in an input folder holds texts or records (loose JSON, Parquet), according to its name. A
/// hidden file holds neither.
struct CorpusName {
  bool is_text = false, is_record = false, is_hidden = false;

  explicit CorpusName(std::string_view name) : is_hidden(name.starts_with('.')) {
    if (is_hidden) return;
    name = uncompressed_name(name);
    is_text = name.ends_with(".txt");
    is_record = name.ends_with(".json") || name.ends_with(".jsonl") || name.ends_with(".parquet");
  }
};

/// Whether a file is JSON that our programs write: the sidecar of a dataset, the state of a run that can be
/// interrupted, or what shards leave beside their outputs. An output may be in the folder of the corpus.
bool is_own_json(const std::string& path) {
  constexpr std::array<std::string_view, 2> kBeginnings = {"{\n  \"format\": \"megalith-",
                                                           "{\n  \"run\": {\n    \"version\": "};
  std::array<char, 64> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  const std::string_view text(head.data(), static_cast<size_t>(file.gcount()));
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view begin) { return text.starts_with(begin); });
}

/// Device and inode of each file and folder that was found below an input folder, so that it is found only
/// once, even if links to it are circular.
using RealFiles = std::set<std::pair<dev_t, ino_t>>;

/// Looks for a corpus in folders.
class FolderSearch {
 public:
  explicit FolderSearch(TextUnit unit) : texts_(unit != TextUnit::kNone) {}

  /// The corpus files below a folder, in byte order of their paths. Leaves out what is_own_json() names, and
  /// files that were already found in another folder.
  std::vector<CorpusFile> files_below(const std::string& folder) {
    files_.clear();
    found_ = others_ = unknown_ = 0;
    look_into(folder);
    if (found_ == 0) fail_without_files(folder);
    if (texts_ && others_ + unknown_ > 0)
      log(folder, ": reading ", found_, " of ", found_ + others_ + unknown_,
          " files, those of .txt; name others by a quoted pattern, such as '", folder, "/*.md'");
    std::sort(files_.begin(), files_.end(),
              [](const CorpusFile& a, const CorpusFile& b) { return a.path < b.path; });
    return std::move(files_);
  }

 private:
  /// Adds the corpus files below a folder. Links are followed, but no file or folder is used twice: links may
  /// be circular, or lead to one folder on several paths.
  void look_into(const fs::path& folder) {
    std::error_code reason;
    std::vector<fs::directory_entry> entries;  // these know their kind, unless they are links
    for (auto entry = fs::directory_iterator(folder, reason); !reason && entry != fs::directory_iterator();
         entry.increment(reason))
      entries.push_back(*entry);
    if (reason) fail(ErrorKind::kNoInput, folder.string(), ": cannot read the folder: ", reason.message());
    std::sort(entries.begin(), entries.end());
    for (const fs::directory_entry& entry : entries) {
      if (entry.is_directory(reason)) {
        const auto facts = facts_of(entry.path().string());
        if (facts && seen_.insert(facts->id).second) look_into(entry.path());
      } else if (entry.is_regular_file(reason)) {
        take(entry.path());
      }
    }
  }

  void take(const fs::path& path) {
    const CorpusName name(path.filename().string());
    if (!name.is_text && !name.is_record) {
      unknown_ += name.is_hidden ? 0 : 1;
      return;
    }
    if (path.extension() == ".json" && is_own_json(path.string())) return;
    if (name.is_text != texts_) {
      ++others_;
      return;
    }
    ++found_;
    const auto facts = facts_of(path.string());
    if (facts && seen_.insert(facts->id).second)
      files_.push_back({path.string(), facts});
    else
      log("Passing over ", path.string(), ": it was already found under another name");
  }

  [[noreturn]] void fail_without_files(const std::string& folder) const {
    constexpr const char* kRecords = ".json, .jsonl or .parquet";
    std::string others;
    if (others_ > 0)
      others = texts_
                   ? concat("; it has ", others_, " of ", kRecords, ", which are read without --text")
                   : concat("; it has ", others_,
                            " of .txt, which are read with --text file (each file is a document) or --text "
                            "paragraph (cut at blank lines)");
    else if (texts_)
      others = "; name other files by a quoted pattern, such as '*.md'";
    fail(ErrorKind::kNoInput, folder, ": no ", texts_ ? ".txt" : kRecords,
         " file is in this folder (nor one compressed to .gz, .zst, .bz2 or .xz)", others);
  }

  bool texts_;
  RealFiles seen_;  // only for files found in folders: a file that is named twice is used twice
  std::vector<CorpusFile> files_;
  size_t found_ = 0;    // corpus files in the folder, also those that were added before
  size_t others_ = 0;   // files of the other kind: records among texts, or texts
  size_t unknown_ = 0;  // files with names of neither kind, hidden ones apart
};

}  // namespace

void require_no_keys(const std::vector<std::string>& json_keys, TextUnit unit, Problems& problems) {
  if (unit != TextUnit::kNone && json_keys != std::vector<std::string>{"text"})
    problems.add(Opt{"text"}, " and ", Opt{"json-keys"},
                 " contradict each other: plain text has no keys; leave one of them out");
}

std::vector<std::string> listed_objects(const std::vector<std::string>& lists) {
  std::vector<std::string> names;
  for (const std::string& list : lists) {
    const size_t before = names.size();
    for (const std::string& line : split(read_file(list), '\n'))
      if (const std::string_view name = trim(line); !name.empty()) names.emplace_back(name);
    if (names.size() == before) fail(ErrorKind::kNoInput, list, ": names no object; wanted one name a line");
  }
  return names;
}

std::vector<PlannedFile> planned_files(const std::vector<std::string>& inputs, TextUnit unit) {
  std::vector<PlannedFile> files;
  for (CorpusFile& file : corpus_entries(inputs, unit)) {
    const auto facts = file.facts ? file.facts : facts_of(file.path);
    if (!facts) fail(ErrorKind::kNoInput, file.path, ": cannot open: ", std::strerror(errno));
    if (!facts->regular)
      fail(ErrorKind::kUsage, file.path,
           ": is not a regular file, so it cannot be divided into shards; wanted files");
    files.push_back({std::move(file.path), facts->size});
  }
  return files;
}

std::optional<FileFacts> facts_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileFacts{.id = {info.st_dev, info.st_ino},
                   .size = static_cast<uint64_t>(info.st_size),
                   .modified = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec,
                   .regular = S_ISREG(info.st_mode)};
}

std::vector<std::string> corpus_files(const std::vector<std::string>& inputs, TextUnit unit) {
  std::vector<std::string> paths;
  for (CorpusFile& file : corpus_entries(inputs, unit)) paths.push_back(std::move(file.path));
  return paths;
}

std::vector<CorpusFile> corpus_entries(const std::vector<std::string>& inputs, TextUnit unit) {
  std::vector<CorpusFile> files;
  FolderSearch folders(unit);
  for (const std::string& input : inputs) {
    for (const std::string& path : expand(input)) {
      if (!fs::is_directory(path)) {
        files.push_back({path});
        continue;
      }
      for (CorpusFile& file : folders.files_below(path)) files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace megalith
