#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/layering/tree.h"
#include "tests/support/once/pattern.h"

// Enforces libcore/LAYERS, which lists the folders that a folder may include, and other rules on which
// readers of the tree rely (docs/developing.md, "Rooms").
namespace megalith {
namespace {
namespace fs = std::filesystem;

using test::kRoot;
using test::sources;
using test::table_lines;
using test::text_of;

/// Maps each folder below libcore to its level.
std::map<std::string, int> read_layers() {
  std::map<std::string, int> levels;
  for (const std::string& line : table_lines("libcore/LAYERS")) {
    const size_t colon = line.find(':');
    levels[line.substr(0, colon)] = std::stoi(line.substr(colon + 1));
  }
  return levels;
}

std::vector<std::string> includes(const std::string& file) {
  static const test::Pattern kInclude(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  std::vector<std::string> found;
  std::istringstream text(text_of(file));
  for (std::string line; std::getline(text, line);)
    if (const auto match = kInclude.first_in(line); !match.empty()) found.push_back(match[1]);
  return found;
}

std::string folder_of(const std::string& path) {
  return fs::path(path).parent_path().string();
}

/// The folder of a source: "FOLDER" for "libcore/FOLDER/file.h".
std::string layer_of(const std::string& path) {
  return fs::path(path).parent_path().lexically_relative("libcore").string();
}

TEST(Layering, EveryFolderThatHoldsSourcesHasALevelAndALineInTheDocs) {
  const auto levels = read_layers();
  const std::string docs = text_of("docs/developing.md");
  std::set<std::string> folders;
  for (const std::string& file : sources("libcore")) folders.insert(layer_of(file));
  for (const std::string& folder : folders) {
    EXPECT_TRUE(levels.contains(folder)) << folder << " is not in libcore/LAYERS";
    EXPECT_NE(docs.find("\n| `" + folder + "` |"), std::string::npos)
        << folder << " is not in docs/developing.md";
  }
  for (const auto& [folder, level] : levels)
    EXPECT_TRUE(folders.contains(folder)) << folder << " is in libcore/LAYERS only";
}

TEST(Layering, NoFolderIncludesUpwardOrSideways) {
  const auto levels = read_layers();
  for (const std::string& file : sources("libcore")) {
    const std::string from = layer_of(file);
    ASSERT_TRUE(levels.contains(from)) << file;
    for (const std::string& include : includes(file)) {
      if (include.rfind("apps/", 0) == 0 || include.rfind("tests/", 0) == 0)
        ADD_FAILURE() << file << " includes " << include;
      if (include.rfind("libcore/", 0) != 0) continue;
      const std::string to = layer_of(include);
      if (to == from) continue;
      ASSERT_TRUE(levels.contains(to)) << file << " includes " << include;
      EXPECT_LT(levels.at(to), levels.at(from))
          << file << " (" << from << ", level " << levels.at(from) << ") includes " << include << " (level "
          << levels.at(to) << ")";
    }
  }
}

TEST(Layering, NoFolderHoldsMoreThanThirtyFiles) {
  constexpr int kMax = 30;
  std::map<std::string, int> files;
  for (const char* top : {"libcore", "apps", "tests"})
    for (const std::string& file : sources(top)) ++files[folder_of(file)];
  for (const auto& [folder, count] : files)
    EXPECT_LE(count, kMax) << folder << " has too many files; split it into folders (libcore/LAYERS)";
}

// GCC takes two seconds for <regex>. The second file needs the places of matches.
TEST(Layering, TestsUseRegularExpressionsByWayOfPattern) {
  std::set<std::string> users;
  for (const std::string& file : sources("tests"))
    for (const std::string& include : includes(file))
      if (include == "regex") users.insert(file);
  EXPECT_EQ(users, (std::set<std::string>{"tests/convert/sources/declared_test.cpp",
                                          "tests/support/once/pattern.cpp"}));
}

// With each source next to its header, every function is near its declaration, and no dependency between
// folders is visible to the linker alone.
TEST(Layering, ASourceLiesBesideTheHeaderOfItsName) {
  for (const std::string& file : sources("libcore")) {
    if (!file.ends_with(".cpp")) continue;
    const fs::path own = fs::path(file).replace_extension(".h");
    std::set<std::string> of_its_name;
    for (const std::string& include : includes(file))
      if (fs::path(include).filename() == own.filename()) of_its_name.insert(include);
    EXPECT_TRUE(of_its_name.empty() || of_its_name.contains(own.string()))
        << file << " has its header elsewhere";
  }
}

/// The line without its comment. A "//" within a string begins none.
std::string code_of(const std::string& line) {
  static const test::Pattern kWhole(R"re("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)'|//.*)re");
  for (const test::Pattern::Match& found : kWhole.all_in(line))
    if (found[0].starts_with("//")) return line.substr(0, line.size() - found[0].size());
  return line;
}

TEST(Layering, NoStringHoldsTheBeginningOfAComment) {
  EXPECT_EQ(code_of("a = 1'000;  // paddle's \"unit\""), "a = 1'000;  ");
  EXPECT_EQ(code_of(R"(f("http://a\"//", '"', x);  // why)"), R"(f("http://a\"//", '"', x);  )");
  EXPECT_EQ(code_of(R"(f('\'', "//b") + paddle;)"), R"(f('\'', "//b") + paddle;)");
  EXPECT_EQ(code_of("// \"all\""), "");
}

// Only libcore/dialects may depend on which tool a user comes from, so no other folder of the core may name a
// tool. A comment may name one as the source of a rule.
TEST(Layering, TheCoreNamesNoOtherTool) {
  static const test::Pattern kTool = test::Pattern::of_any_case(
      "megatron|mindformers|mindspore|paddle|llm[-_]?acc|ddp[-_]?tutorial|axolotl");
  for (const char* folder : {"train/step", "train/run", "model", "parallel", "ops"})
    for (const std::string& file : sources(std::string("libcore/") + folder)) {
      std::istringstream text(text_of(file));
      int number = 0;
      for (std::string line; std::getline(text, line);) {
        ++number;
        EXPECT_FALSE(kTool.is_in(code_of(line))) << file << ':' << number << ": " << line;
      }
    }
}

/// The test of a source: "tests/ROOM/file_test.cpp" for "libcore/ROOM/file.cpp".
std::string test_of(const std::string& source) {
  return "tests" + source.substr(source.find('/'), source.rfind('.') - source.find('/')) + "_test.cpp";
}

// The source without the suffix of an instruction set: such variants are tested together with the generic
// function.
std::string without_isa(const std::string& source) {
  static const test::Pattern kIsa("_(avx2|avx512|avx512vbmi2|avx512bf16)(?=\\.cpp$)");
  return test::replaced(source, kIsa, "");
}

TEST(Layering, EverySourceHasATestOfItsNameOrALineThatNamesOne) {
  std::map<std::string, std::string> elsewhere;  // source -> test
  for (const std::string& line : table_lines("tests/COVERED_ELSEWHERE")) {
    const size_t colon = line.find(": ");
    ASSERT_NE(colon, std::string::npos) << line;
    EXPECT_TRUE(
        elsewhere.emplace("libcore/" + line.substr(0, colon), "tests/" + line.substr(colon + 2)).second)
        << line << ": named twice";
  }
  for (const std::string& source : sources("libcore")) {
    if (!source.ends_with(".cpp")) continue;
    const bool own = fs::exists(kRoot / test_of(source)) || fs::exists(kRoot / test_of(without_isa(source)));
    const auto line = elsewhere.find(source);
    const auto family = elsewhere.find(without_isa(source));
    EXPECT_TRUE(own || line != elsewhere.end() || family != elsewhere.end())
        << source << ": neither " << test_of(source) << " nor a line in tests/COVERED_ELSEWHERE";
    EXPECT_FALSE(own && line != elsewhere.end()) << source << " has a test of its name; drop its line";
  }
  for (const auto& [source, covering] : elsewhere) {
    EXPECT_TRUE(fs::exists(kRoot / source)) << source << " is in tests/COVERED_ELSEWHERE only";
    EXPECT_TRUE(fs::exists(kRoot / covering)) << covering << ", which covers " << source << ", is not there";
  }
}

// Headers of libraries that few programs need may be included only in plugins (base/plugins/plugin.h), those
// of Boost.Program_options only in the option parser.
TEST(Layering, ThirdPartyHeadersStayInTheirRoom) {
  const std::vector<std::pair<test::Pattern, std::string>> owners = {
      {"^(cuda|cublas|cudnn|nccl).*", "libcore/ops/cuda/.*"},
      {"^oneapi/dnnl/.*|^dnnl.*", "libcore/ops/cpu/plugin_onednn.cpp"},
      {"^boost/program_options.*", "libcore/options/.*"},
      {"^yaml-cpp/.*", "libcore/options/plugin_yaml.cpp"},
      {"^sentencepiece_.*", "libcore/text/formats/sentencepiece/plugin_sentencepiece.cpp"},
      {"^simdjson.*", "libcore/(json/.*|base/utf8_validation\\.cpp)"},
      {"^utf8proc.*", "libcore/(base/utf8|text/unicode/(forms|python_text))\\.cpp"},
      {"^nettle/.*", "libcore/hash/(sha256|hmac|md5).cpp"},
      {"^xxh.*", "libcore/hash/xxh64.cpp"},
      {"^libdeflate.*", "libcore/hash/plugin_deflate.cpp"},
      {"^[a-z]+intrin\\.h",  // x86 intrinsics: in files for one instruction set, or shared by two
       "libcore/(.*_(avx2|avx512|avx512vbmi2|avx512bf16)(_inl)?\\.(cpp|h)|text/pretokenize/"
       "block_scan_inl\\.h|"
       "base/machine/bytes16\\.h|ops/cpu/kernels/kernels\\.inc|ops/cpu/thread_team\\.cpp)"},
      {"^(zlib|zstd|bzlib|lzma).*", "libcore/io/streams/plugin_decoder.cpp"},
  };
  for (const char* folder : {"libcore", "apps"})
    for (const std::string& file : sources(folder))
      for (const std::string& include : includes(file))
        for (const auto& [header, owner] : owners)
          if (header.matches(include)) {
            EXPECT_TRUE(test::Pattern(owner).matches(file)) << file << " includes " << include;
          }
}

}  // namespace
}  // namespace megalith
