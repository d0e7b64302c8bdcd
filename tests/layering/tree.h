#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace megalith::test {

/// The repository's root folder.
inline const std::filesystem::path kRoot = MEGALITH_SOURCE_DIR;

/// The repository's C++ and CUDA files below `folder` ("libcore"): sorted paths relative to kRoot.
std::vector<std::string> sources(const std::string& folder);

/// The contents of a file whose path is relative to kRoot.
std::string text_of(const std::string& path);

/// The lines of a table in the repository, without empty lines and comments ('#').
std::vector<std::string> table_lines(const std::string& path);

/// Maps "Suite.Name" of every enabled test to its file, relative to kRoot.
std::map<std::string, std::string> tests_by_name();

/// The pages in the root folder and below docs/, as paths relative to the root. Without the generated page,
/// whose blocks are the programs' synopses.
std::vector<std::string> doc_pages();

/// The text of a page that doc_pages() lists.
std::string text_of_page(const std::string& page);

}  // namespace megalith::test
