#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/io/file.h"

// Enforces libcore/LAYERS: who may include whom (docs/developing.md, "Rooms").
namespace megalith {
namespace {
namespace fs = std::filesystem;

const fs::path kRoot = MEGALITH_SOURCE_DIR;

/// Folder below libcore -> level.
std::map<std::string, int> read_layers() {
  std::map<std::string, int> levels;
  std::istringstream lines(read_file((kRoot / "libcore/LAYERS").string()));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(':');
    levels[line.substr(0, colon)] = std::stoi(line.substr(colon + 1));
  }
  return levels;
}

std::vector<fs::path> sources(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".h" || extension == ".cpp" || extension == ".cu" || extension == ".cuh" ||
        extension == ".inc")
      files.push_back(entry.path());
  }
  return files;
}

std::vector<std::string> includes(const fs::path& file) {
  static const std::regex kInclude(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  std::vector<std::string> found;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (std::smatch match; std::regex_search(line, match, kInclude)) found.push_back(match[1]);
  return found;
}

/// The folder that gives "libcore/FOLDER/file.h" its level: the longest part of its path that LAYERS names.
std::string layer_of(const std::string& path, const std::map<std::string, int>& levels) {
  fs::path folder = fs::path(path).parent_path().lexically_relative("libcore");
  while (!folder.empty() && !levels.contains(folder.string())) folder = folder.parent_path();
  return folder.string();
}

std::string relative(const fs::path& file) {
  return file.lexically_relative(kRoot).string();
}

TEST(Layering, EveryFolderHasALevel) {
  const auto levels = read_layers();
  for (const fs::path& file : sources(kRoot / "libcore"))
    EXPECT_NE(layer_of(relative(file), levels), "") << file << ": no folder of it is in libcore/LAYERS";
  for (const auto& [folder, level] : levels)
    EXPECT_TRUE(fs::is_directory(kRoot / "libcore" / folder)) << folder << " is in libcore/LAYERS only";
}

TEST(Layering, NoFolderIncludesUpwardOrSideways) {
  const auto levels = read_layers();
  for (const fs::path& file : sources(kRoot / "libcore")) {
    const std::string from = layer_of(relative(file), levels);
    for (const std::string& include : includes(file)) {
      if (include.rfind("apps/", 0) == 0 || include.rfind("tests/", 0) == 0)
        ADD_FAILURE() << file << " includes " << include;
      if (include.rfind("libcore/", 0) != 0) continue;
      const std::string to = layer_of(include, levels);
      if (to == from) continue;
      ASSERT_NE(to, "") << file << " includes " << include;
      EXPECT_LT(levels.at(to), levels.at(from))
          << file << " (" << from << ", level " << levels.at(from) << ") includes " << include << " (level "
          << levels.at(to) << ")";
    }
  }
}

// The headers of libraries that few programs need stay in the plugins (base/plugin.h), Program_options in the
// option parser.
TEST(Layering, ThirdPartyHeadersStayInTheirRoom) {
  const std::vector<std::pair<std::regex, std::string>> owners = {
      {std::regex("^(cuda|cublas|cudnn|nccl).*"), "libcore/(ops/cuda|parallel/nccl_comm).*"},
      {std::regex("^oneapi/dnnl/.*|^dnnl.*"), "libcore/ops/cpu/plugin_onednn.cpp"},
      {std::regex("^boost/program_options.*"), "libcore/config/.*"},
      {std::regex("^yaml-cpp/.*"), "libcore/config/plugin_yaml.cpp"},
      {std::regex("^sentencepiece_.*"), "libcore/text/formats/plugin_sentencepiece.cpp"},
      {std::regex("^simdjson.*"), "libcore/json/.*"},
      {std::regex("^(zlib|zstd|bzlib|lzma).*"), "libcore/io/plugin_decoder.cpp"},
  };
  for (const char* folder : {"libcore", "apps"})
    for (const fs::path& file : sources(kRoot / folder)) {
      const std::string path = fs::relative(file, kRoot).string();
      for (const std::string& include : includes(file))
        for (const auto& [header, owner] : owners)
          if (std::regex_match(include, header)) {
            EXPECT_TRUE(std::regex_match(path, std::regex(owner))) << path << " includes " << include;
          }
    }
}

}  // namespace
}  // namespace megalith
