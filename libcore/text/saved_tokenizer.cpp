#include "libcore/text/saved_tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json_names.h"
#include "libcore/text/tokenizer_files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

// Whether a name stays within the checkpoint's folder, with one subfolder at most.
bool is_inside(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_plain_name(name);
  return is_plain_name(name.substr(0, slash)) && is_plain_name(name.substr(slash + 1));
}

/// The part of an index that is read here.
struct IndexedFiles {
  std::vector<IndexedFile> files;
  template <class V>
  void fields(V&& v) {
    v("files", files);
  }
};

IndexedFiles parse_files(std::string_view text, const std::string& index) {
  const Json json = Json::parse(text, index);
  const JsonNames names(json, index);
  auto listed = read_fields<IndexedFiles>(json);
  check_indexed_files(listed.files, index);
  return listed;
}

std::string listed_name(const fs::path& file) {
  return concat(kTokenizerFolder, "/", file.filename().string());
}

void compare(const std::string& path, const IndexedFile& listed) {
  const std::string text = read_own_file(path);
  if (text.size() != listed.bytes || xxh64(text) != listed.checksum)
    fail(ErrorKind::kData, path, ": does not match its checksum; the file is damaged or was changed");
}

// Checks the tokenizer's folder in a Megalith checkpoint. Does nothing for any other folder.
void check_folder(const fs::path& folder) {
  const std::string index = (folder.parent_path() / kIndexFile).string();
  if (folder.filename() != kTokenizerFolder || !file_exists(index)) return;
  const std::string text = read_own_file(index);
  if (text.find(json_quote(kIndexFormat)) == std::string::npos) return;  // the index of another tool
  check_index_checksum(text, index);
  check_tokenizer_files(folder.parent_path().string(), parse_files(text, index).files);
}

}  // namespace

bool is_plain_name(std::string_view name) {
  return !name.empty() && name[0] != '.' &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

void check_indexed_files(std::span<const IndexedFile> files, const std::string& name) {
  for (size_t i = 0; i < files.size(); ++i)
    if (!is_inside(files[i].name))
      fail(ErrorKind::kData, name, ": files[", i, "].name is ", quote(shortened(files[i].name, 200)),
           ", wanted the name of a file in the checkpoint's folder");
}

void check_index_checksum(std::string_view text, const std::string& name) {
  const size_t end = text.rfind(kIndexChecksumMember);
  const std::string_view rest =
      end == std::string_view::npos ? "" : text.substr(end + kIndexChecksumMember.size());
  if (trim(rest) != concat(json_quote(hex64(xxh64(text.substr(0, end)))), "\n}"))
    fail(ErrorKind::kData, name,
         ": its bytes do not match its checksum; the file is damaged: use another checkpoint, or restore the "
         "file");
}

void check_tokenizer_files(const std::string& checkpoint, std::span<const IndexedFile> listed) {
  const std::string folder = concat(checkpoint, "/", kTokenizerFolder);
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder)) {
      const bool known = std::any_of(listed.begin(), listed.end(), [&](const IndexedFile& file) {
        return file.name == listed_name(entry.path());
      });
      if (!known && is_tokenizer_file(entry.path().filename().string()))
        fail(ErrorKind::kData, entry.path().string(),
             ": the checkpoint was saved without this file; remove it");
    }
  for (const IndexedFile& file : listed)
    if (file.name.starts_with(concat(kTokenizerFolder, "/"))) compare(checkpoint + "/" + file.name, file);
}

void check_saved_tokenizer(const std::string& path) {
  std::error_code error;  // ignored: whoever reads a missing file reports it
  const fs::path whole = fs::weakly_canonical(path, error);
  if (fs::is_directory(whole, error)) return check_folder(whole);
  const fs::path named = fs::weakly_canonical(parent_or_here(path), error);
  check_folder(named);
  // A link may lead into a checkpoint.
  if (whole.parent_path() != named) check_folder(whole.parent_path());
}

}  // namespace megalith
