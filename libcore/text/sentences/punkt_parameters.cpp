#include "libcore/text/sentences/punkt_parameters.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/io/files/file.h"
#include "libcore/text/identity_hash.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// One file of a model. Calls `take` with each line and its place.
class ModelFile {
 public:
  ModelFile(const std::string& folder, const char* name, IdentityHash& hash)
      : path_(folder + "/" + name), text_(read_file(path_)) {
    hash.add(text_);
    const size_t valid = valid_utf8_prefix(text_);
    if (valid < text_.size()) fail(ErrorKind::kData, path_, ": byte ", valid + 1, " is not UTF-8");
  }
  void each_line(const std::function<void(std::string_view)>& take) {
    for (std::string_view rest = text_; !rest.empty();) {
      ++line_;
      const size_t end = std::min(rest.find('\n'), rest.size());
      take(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  /// The position of the only tab in `line`; kData if there is not exactly one.
  size_t tab(std::string_view line) const {
    const size_t at = line.find('\t');
    if (at == std::string_view::npos || line.find('\t', at + 1) != std::string_view::npos)
      wrong(line, "two fields with a tab between them");
    return at;
  }
  [[noreturn]] void wrong(std::string_view line, const char* wanted) const {
    fail(ErrorKind::kData, path_, ":", line_, ": found ", quote(line), ", wanted ", wanted,
         "; fetch the model again");
  }

 private:
  std::string path_, text_;
  int64_t line_ = 0;
};

void read_words(ModelFile file, PunktParameters::Words& words) {
  file.each_line([&](std::string_view line) { words.emplace(line); });
}

/// Where NLTK looks, in its order. NLTK's third group belongs to the Python that runs it; here, the active
/// environment takes its place, followed by the usual places.
std::vector<std::string> data_folders() {
  std::vector<std::string> folders;
  const std::string home = environment("HOME");
  for (std::string folder : split(environment("NLTK_DATA"), ':')) {
    if (!home.empty() && (folder == "~" || folder.starts_with("~/"))) folder.replace(0, 1, home);
    if (!folder.empty()) folders.push_back(std::move(folder));
  }
  if (!home.empty()) folders.push_back(home + "/nltk_data");
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string prefix = environment(name); !prefix.empty())
      for (const char* below : {"/nltk_data", "/share/nltk_data", "/lib/nltk_data"})
        folders.push_back(prefix + below);
  for (const char* folder : {"/usr/nltk_data", "/usr/share/nltk_data", "/usr/local/share/nltk_data",
                             "/usr/lib/nltk_data", "/usr/local/lib/nltk_data", "/usr/local/nltk_data"})
    folders.push_back(folder);
  return folders;
}

/// For the error message: what exists instead of the model; empty if there is nothing similar.
std::string near_miss(const std::string& tokenizers, const std::string& language) {
  for (const std::string& name :
       {std::string("punkt_tab.zip"), "punkt/" + language + ".pickle", "punkt/PY3/" + language + ".pickle"}) {
    const std::string path = tokenizers + name;
    if (!file_exists(path)) continue;
    return name.ends_with(".zip") ? path + " exists, but is packed: unpack it; "
                                  : path + " exists, but only punkt_tab models can be read; ";
  }
  return "";
}

}  // namespace

PunktParameters read_punkt_parameters(const std::string& folder) {
  PunktParameters out;
  IdentityHash hash;
  ModelFile collocations(folder, "collocations.tab", hash);
  collocations.each_line([&](std::string_view line) {
    collocations.tab(line);
    out.collocations.emplace(line);
  });
  read_words(ModelFile(folder, "sent_starters.txt", hash), out.sentence_starters);
  read_words(ModelFile(folder, "abbrev_types.txt", hash), out.abbreviations);
  ModelFile contexts(folder, "ortho_context.tab", hash);
  contexts.each_line([&](std::string_view line) {
    const size_t tab = contexts.tab(line);
    const std::optional<int64_t> flags = parse_int(trim(line.substr(tab + 1)));
    if (!flags || *flags < 0 || *flags > (kSeenUpper | kSeenLower))
      contexts.wrong(line, "a word, a tab and a sum of the flags 2 to 64");
    out.contexts.insert_or_assign(std::string(line.substr(0, tab)), static_cast<uint32_t>(*flags));
  });
  out.hash = hash.hex();
  return out;
}

std::string find_punkt_folder(const std::string& language) {
  if (language.empty() || language.find_first_of("/.\\") != std::string::npos)
    fail(ErrorKind::kUsage, "--lang ", quote(language),
         " is not the name of a language; wanted one such as \"english\"");
  const std::vector<std::string> folders = data_folders();
  std::string instead;
  for (const std::string& folder : folders) {
    std::string found = concat(folder, "/tokenizers/punkt_tab/", language);
    if (fs::is_directory(found)) return found;
    instead += near_miss(folder + "/tokenizers/", language);
  }
  fail(
      ErrorKind::kNoInput, "--split-sentences: no Punkt model of ", quote(language),
      "; wanted the folder tokenizers/punkt_tab/", language, " in one of ", join(folders, ", "), "; ",
      instead,
      "fetch it with \"python3 -m nltk.downloader punkt_tab\", on another machine if this one has no network,"
      " and set NLTK_DATA to the folder that has tokenizers/ in it");
}

}  // namespace megalith
