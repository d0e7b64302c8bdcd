#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/file.h"

// Enforces libcore/LAYERS: who may include whom (docs/developing.md, "Rooms").
namespace megalith {
namespace {
namespace fs = std::filesystem;

struct Room {
  int level = 0;
  std::set<std::string> sideways;  // rooms of the same level that it may include
};

const fs::path kRoot = MEGALITH_SOURCE_DIR;

std::map<std::string, Room> read_layers() {
  std::map<std::string, Room> rooms;
  std::istringstream lines(read_file((kRoot / "libcore/LAYERS").string()));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t colon = line.find(':');
    std::istringstream rest(line.substr(colon + 1));
    Room room;
    rest >> room.level;
    for (std::string name; rest >> name;) room.sideways.insert(name);
    rooms[line.substr(0, colon)] = room;
  }
  return rooms;
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

std::string room_of(const std::string& path) {  // "libcore/ROOM/file.h" -> "ROOM"
  const std::string rest = path.substr(path.find("libcore/") + 8);
  return rest.substr(0, rest.find('/'));
}

TEST(Layering, EveryRoomHasALevel) {
  const auto rooms = read_layers();
  for (const auto& entry : fs::directory_iterator(kRoot / "libcore"))
    if (entry.is_directory() && !sources(entry.path()).empty()) {
      EXPECT_TRUE(rooms.contains(entry.path().filename().string()))
          << entry.path() << " is not in libcore/LAYERS";
    }
}

TEST(Layering, NoRoomIncludesUpwardOrSidewaysUnlessAllowed) {
  const auto rooms = read_layers();
  for (const fs::path& file : sources(kRoot / "libcore")) {
    const std::string from = room_of(file.string());
    for (const std::string& include : includes(file)) {
      if (include.rfind("apps/", 0) == 0 || include.rfind("tests/", 0) == 0)
        ADD_FAILURE() << file << " includes " << include;
      if (include.rfind("libcore/", 0) != 0) continue;
      const std::string to = room_of(include);
      if (to == from) continue;
      ASSERT_TRUE(rooms.contains(to)) << file << " includes " << include;
      const bool downward = rooms.at(to).level < rooms.at(from).level;
      EXPECT_TRUE(downward || rooms.at(from).sideways.contains(to))
          << file << " (" << from << ", level " << rooms.at(from).level << ") includes " << include
          << " (level " << rooms.at(to).level << ")";
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
      {std::regex("^sentencepiece_.*"), "libcore/text/plugin_sentencepiece.cpp"},
      {std::regex("^simdjson.*"), "libcore/base/.*"},
      {std::regex("^(zlib|zstd|bzlib|lzma).*"), "libcore/base/plugin_decoder.cpp"},
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
