#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

std::string libraries_of(std::string_view name) {
  const CommandResult loaded = run_command(concat("LD_TRACE_LOADED_OBJECTS=1 ", app(name)));
  EXPECT_EQ(loaded.code, 0) << loaded.err;
  EXPECT_NE(loaded.out.find("libmegalith_core.so"), std::string::npos) << name << ": " << loaded.out;
  return loaded.out;
}

// Loading any of these libraries, most of all oneDNN, would slow down every start. They must only be loaded
// with plugins, which are opened when needed (base/plugins/plugin.h).
TEST(Start, LoadsNoLibraryThatFewRunsNeed) {
  for (const char* const name : {"preprocess", "generate", "pretrain"}) {
    const std::string loaded = libraries_of(name);
    for (const char* const library :
         {"libdnnl", "libsentencepiece", "libyaml-cpp", "libzstd", "liblzma", "libbz2"})
      EXPECT_EQ(loaded.find(library), std::string::npos) << name << " loads " << library;
  }
}

TEST(Start, OfWhatHandlesTextsLoadsNothingOfModels) {
  for (const char* const name : {"preprocess", "merge", "data", "tokenizer"}) {
    const std::string loaded = libraries_of(name);
    for (const char* const library : {"libmegalith.so", "libgomp"})
      EXPECT_EQ(loaded.find(library), std::string::npos) << name << " loads " << library;
  }
}

// An empty entry in the library search path means the working directory, where anybody may have put
// libraries. It must be ignored.
TEST(Start, LooksForNoLibraryInTheWorkingDirectory) {
  const CommandResult tried =
      run_command(concat("cd / && LD_DEBUG=libs ", app("preprocess"), " --version 2>&1 >/dev/null"));
  ASSERT_EQ(tried.code, 0);
  size_t files = 0;
  for (size_t at = tried.out.find("trying file="); at != std::string::npos;
       at = tried.out.find("trying file=", at + 1)) {
    ++files;
    EXPECT_EQ(tried.out[tried.out.find('=', at) + 1], '/') << tried.out.substr(at, 80);
  }
  EXPECT_GT(files, 0u);
}

/// What follows the first line.
std::string after_first_line(const std::string& text) {
  return text.substr(std::min(text.find('\n'), text.size()));
}

TEST(Start, EveryProgramSaysTheSameOfItsBuild) {
  const std::string known = after_first_line(run_command(app("data") + " --version").out);
  EXPECT_NE(known.find("\nplugins: "), std::string::npos) << known;
  for (const char* name : {"convert", "doctor", "pretrain"})
    EXPECT_EQ(after_first_line(run_command(app(name) + " --version").out), known) << name;
  EXPECT_EQ(after_first_line(run_command(MEGALITH_BINARY_DIR "/bin/megalith --version").out), known);
}

}  // namespace
}  // namespace megalith::test
