#include "tests/layering/tree.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {

namespace fs = std::filesystem;

std::vector<std::string> sources(const std::string& folder) {
  constexpr std::array kEndings = {".h", ".cpp", ".cu", ".cuh", ".inc"};
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
    if (std::find(kEndings.begin(), kEndings.end(), entry.path().extension()) != kEndings.end())
      files.push_back(entry.path().lexically_relative(kRoot).string());
  std::sort(files.begin(), files.end());
  return files;
}

std::string text_of(const std::string& path) {
  return read_file((kRoot / path).string());
}

std::vector<std::string> table_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream text(text_of(path));
  for (std::string line; std::getline(text, line);)
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  return lines;
}

std::map<std::string, std::string> tests_by_name() {
  static const test::Pattern kTest(R"((?:^|\n)TEST(?:_[FP])?\((\w+),\s*(\w+)\))");
  std::map<std::string, std::string> found;
  for (const std::string& file : sources("tests")) {
    const std::string text = text_of(file);
    for (const test::Pattern::Match& at : kTest.all_in(text))
      if (!at[2].starts_with("DISABLED_")) found[at[1] + "." + at[2]] = file;
  }
  return found;
}

std::vector<std::string> doc_pages() {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(kRoot))
    if (entry.path().extension() == ".md") found.push_back(entry.path().filename().string());
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs"))
    if (entry.path().extension() == ".md" && entry.path().filename() != "options.md")
      found.push_back(entry.path().lexically_relative(kRoot / "docs").string());
  return found;
}

std::string text_of_page(const std::string& page) {
  return read_file(page_path(page));
}

}  // namespace megalith::test
