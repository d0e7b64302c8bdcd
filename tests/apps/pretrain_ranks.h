#pragma once

#include <regex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/parallel/gloo_comm.h"
#include "tests/apps/pretrain_app.h"
#include "tests/support/processes.h"

namespace megalith::test {

/// In environments and options %r becomes the rank: "RANK=%r WORLD_SIZE=2".
class PretrainRanks : public PretrainApp {
 protected:
  void SetUp() override {
    if (!has_process_comm()) GTEST_SKIP() << "built without Gloo (package libgloo-dev)";
  }

  /// Two ranks under a launcher's environment. Their stderr is in err.0 and err.1; the result is the worse
  /// code.
  int start(const std::string& environment, const std::string& options) const {
    return start_model(kModel, environment, options);
  }
  int start_model(const std::string& model, const std::string& environment,
                  const std::string& options) const {
    std::string script = "cd " + dir_.path().string() + "\n";
    for (const char* rank : {"0", "1"})
      script += std::regex_replace("env " + environment + " " + app("pretrain") + " " + model + options,
                                   std::regex("%r"), rank) +
                " 2> err." + rank + " & p" + rank + "=$!\n";
    return run_command(script + "wait $p0; a=$?; wait $p1; b=$?; [ $a -gt $b ] && exit $a; exit $b").code;
  }

  /// The lines with a loss, without the time that they took.
  static std::string losses(const std::string& log) {
    std::string out;
    for (const std::string& line : split(log, '\n'))
      if (line.find(" loss") != std::string::npos && line.find("iteration") != std::string::npos)
        out += std::regex_replace(line, std::regex("elapsed[^|]*\\||tokens/s[^|]*\\|"), "|") + "\n";
    return out;
  }

  /// What the launchers' tests have to give.
  std::string one_rank() const {
    const CommandResult result = train("");
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_GE(split(losses(result.err), '\n').size(), 8U) << result.err;
    return losses(result.err);
  }
  void expect_one_rank(const std::string& environment) const {
    EXPECT_EQ(start(environment, ""), 0) << file("err.0") << file("err.1");
    EXPECT_EQ(losses(file("err.0")), one_rank()) << file("err.0");
    EXPECT_EQ(file("err.1"), "");  // one rank speaks for all
  }
};

}  // namespace megalith::test
