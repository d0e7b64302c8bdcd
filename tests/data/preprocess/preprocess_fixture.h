#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/data/preprocess/preprocess.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {

/// Gives one id per byte; the end-of-document id is 256. Refuses texts that begin with '!'.
class ByteTokenizer : public Tokenizer {
 public:
  int vocab_size() const override { return 257; }
  int eod() const override { return 256; }
  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override {
    if (utf8.starts_with('!')) fail(ErrorKind::kData, "'!' is no text");
    for (const char c : utf8) ids.push_back(static_cast<unsigned char>(c));
  }
  std::string decode(std::span<const int32_t>) const override { return {}; }
  std::string name() const override { return "ByteTokenizer"; }
  std::string hash() const override { return "of a test"; }
};

/// A run of preprocess() with ByteTokenizer in a temporary folder, and what it logs.
class PreprocessFixture : public testing::Test {
 protected:
  PreprocessFixture() {
    previous_ = set_log_sink([this](const std::string& line) { logged_.push_back(line); });
    config_.output_prefix = dir_ / "out";
    config_.workers = 3;
  }
  ~PreprocessFixture() override { set_log_sink(previous_); }

  /// Writes an input and returns its path.
  std::string input(const std::string& name, const std::string& contents) {
    write_file(dir_ / name, contents);
    config_.inputs.push_back(dir_ / name);
    return dir_ / name;
  }
  PreprocessSummary run() { return preprocess(config_, ByteTokenizer()); }
  /// The message of the run's kData; "no error" if it succeeds.
  std::string error() {
    try {
      run();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kData);
      return e.what();
    }
    return "no error";
  }
  /// All logged lines, each with a line end.
  std::string log_text() const {
    std::string out;
    for (const std::string& line : logged_) out += line + "\n";
    return out;
  }

  TempDir dir_;
  PreprocessConfig config_;
  std::vector<std::string> logged_;
  LogSink previous_;
};

}  // namespace megalith::test
