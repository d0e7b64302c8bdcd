#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"
#include "tests/support/json_log.h"
#include "tests/support/log_lines.h"
#include "tests/train/run/same_tensors.h"
#include "tests/train/run/tiny_run.h"

namespace megalith::test {

/// A folder, configurations that keep all their state in it, and the captured log.
class Loop : public testing::Test {
 protected:
  /// tiny_config() with --save and --load in `folder` and the figures next to that folder.
  PretrainConfig config(const std::string& folder) const {
    PretrainConfig c = tiny_config();
    c.checkpoint.save = c.checkpoint.load = dir_ / folder;
    c.train.log_json = dir_ / (folder + ".jsonl");
    return c;
  }
  std::string complaint(const PretrainConfig& c, ErrorKind kind, const DataSets& data = tiny_data()) {
    try {
      train(c, data, nullptr);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "the run went through";
    return "";
  }
  bool logged(const std::string& part) const {
    return std::ranges::any_of(log_.lines,
                               [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }
  std::vector<Json> figures(const std::string& folder, const std::string& type) const {
    return log_lines(dir_ / (folder + ".jsonl"), type);
  }
  std::filesystem::path checkpoint(const std::string& folder, int64_t iteration) const {
    return dir_.path() / folder / iteration_folder(iteration);
  }
  /// Compares the bytes of every tensor and the state, but not the options, of the checkpoints of `a` and
  /// `b`.
  void expect_same_checkpoint(const std::string& a, const std::string& b, int64_t iteration) const {
    const CheckpointReader left(checkpoint(a, iteration)), right(checkpoint(b, iteration));
    EXPECT_EQ(left.text(kStateFile), right.text(kStateFile));
    EXPECT_GT(left.index().tensors.size(), 30U);
    expect_same_tensors(left, right);
  }
  /// The figures that a step computes, as text, without times.
  static std::vector<std::string> computed(const std::vector<Json>& lines) {
    std::vector<std::string> out;
    for (const Json& line : lines) {
      std::string text;
      for (const char* name : {"iteration", "consumed_samples", "loss", "lr", "grad_norm", "ppl"})
        if (const Json* value = line.find(name)) text += value->dump() + " ";
      out.push_back(text);
    }
    return out;
  }
  void expect_same_figures(const std::string& a, const std::string& b) const {
    for (const char* type : {"train", "valid", "test"})
      EXPECT_EQ(computed(figures(a, type)), computed(figures(b, type))) << type;
  }

  TempDir dir_;
  LogLines log_;
};

}  // namespace megalith::test
