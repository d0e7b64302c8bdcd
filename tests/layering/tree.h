#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace megalith::test {

/// The repository's root folder.
inline const std::filesystem::path kRoot = MEGALITH_SOURCE_DIR;

/// Its C++ and CUDA files below `folder` ("libcore"), as paths from kRoot, sorted by name.
std::vector<std::string> sources(const std::string& folder);

/// The contents of a file, by its path from kRoot.
std::string text_of(const std::string& path);

/// Lines of a table in the repository, without those that are empty or begin with '#'.
std::vector<std::string> table_lines(const std::string& path);

/// "Suite.Name" of every test that is not disabled -> its file, as a path from kRoot.
std::map<std::string, std::string> tests_by_name();

/// The pages of the root and those below docs/, by their paths from there; not the generated one, whose
/// blocks are the programs' synopses.
std::vector<std::string> doc_pages();

/// The text of one of doc_pages().
std::string text_of_page(const std::string& page);

}  // namespace megalith::test
