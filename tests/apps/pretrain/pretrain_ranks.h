#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/pretrain/pretrain_app.h"
#include "tests/support/once/pattern.h"
#include "tests/support/processes.h"
#include "tests/support/rank_processes.h"

namespace megalith::test {

/// Starts runs of two ranks. In environments and options, %r stands for the rank: "RANK=%r WORLD_SIZE=2".
class PretrainRanks : public PretrainApp {
 protected:
  void SetUp() override { SKIP_WITHOUT_GLOO(); }

  /// Starts two ranks in the environment that a launcher gives them. Their output goes to log.0 and log.1.
  /// Returns the higher exit code.
  int start(const std::string& environment, const std::string& options) const {
    return start_model(kModel, environment, options);
  }
  int start_model(const std::string& model, const std::string& environment,
                  const std::string& options) const {
    std::string script = "cd " + dir_.path().string() + "\n";
    for (const char* rank : {"0", "1"})
      script +=
          test::replaced("env " + environment + " " + app("pretrain") + " " + model + options, "%r", rank) +
          " > log." + rank + " 2>&1 & p" + rank + "=$!\n";
    return run_command(script + "wait $p0; a=$?; wait $p1; b=$?; [ $a -gt $b ] && exit $a; exit $b").code;
  }

  /// The losses of a run with one rank, which every launcher must reproduce.
  std::string one_rank() const {
    const CommandResult result = train("");
    EXPECT_EQ(result.code, 0) << result.all();
    EXPECT_GE(split(losses(result.all()), '\n').size(), 8U) << result.all();
    return losses(result.all());
  }
  void expect_one_rank(const std::string& environment) const {
    EXPECT_EQ(start(environment, ""), 0) << file("log.0") << file("log.1");
    EXPECT_EQ(losses(file("log.0")), one_rank()) << file("log.0");
    EXPECT_EQ(file("log.1"), "");  // only rank 0 logs
  }
};

}  // namespace megalith::test
