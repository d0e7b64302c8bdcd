#include "libcore/plan/device/coefficients.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/plan/device/machine.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

TEST(Coefficients, AreWithinTheirBounds) {
  for (const CoefficientInfo& info : coefficient_table()) {
    const double value = fitted_coefficients().*info.member;
    EXPECT_GE(value, info.low) << info.name;
    EXPECT_LE(value, info.high) << info.name;
    EXPECT_GT(info.width, 0) << info.name;
  }
}

// docs/planner.md: V100, A100 of both sizes, H100 of both sizes, B200, GB200 and GB300. A device that
// docs/gpus.yaml names differently would count as one without runs.
TEST(Coefficients, WereFittedToRunsOfDevicesThatAreKnown) {
  int fitted = 0;
  for (const char* name : {"v100", "a100-40", "a100-80", "h100", "H100-SXM-96GB", "b200", "gb200", "gb300"})
    fitted += has_fitted_runs(find_accelerator(name).name);
  EXPECT_EQ(fitted, 8);
  for (const char* name : {"h200", "h800", "a800", "910b", "rtx4090-24gb"})
    EXPECT_FALSE(has_fitted_runs(find_accelerator(name).name)) << name;
}

TEST(Coefficients, AreReadFromAFileByName) {
  const test::TempDir folder;
  const std::string path = folder / "mine.txt";
  write_file(path, "# of our machine\nlink_rate 0.7  # measured\n\nstep_overhead 0.05\n");
  const Coefficients k = read_coefficients(path, fitted_coefficients());
  EXPECT_EQ(k.link_rate, 0.7);
  EXPECT_EQ(k.step_overhead, 0.05);
  EXPECT_EQ(k.network_rate, fitted_coefficients().network_rate);
}

TEST(Coefficients, ComplainWithFileAndLine) {
  const test::TempDir folder;
  const std::string path = folder / "mine.txt";
  const auto complaint = [&](const std::string& text) -> std::string {
    write_file(path, text);
    try {
      read_coefficients(path, fitted_coefficients());
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(
      complaint("link_rate 0.7\nlink_speed 3\n").find("mine.txt:2: \"link_speed\" is not a coefficient"),
      std::string::npos);
  EXPECT_NE(complaint("link_rate 7\n").find("wanted a number from 0.4 to 0.95"), std::string::npos)
      << complaint("link_rate 7\n");
  EXPECT_NE(complaint("link_rate\n").find("wanted a number"), std::string::npos);
  EXPECT_NE(complaint("link_rate nan\n").find("wanted a number"), std::string::npos);
}

}  // namespace
}  // namespace megalith
