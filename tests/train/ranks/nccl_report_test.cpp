#include "libcore/train/ranks/nccl_report.h"

#include <string>

#include <gtest/gtest.h>

#include "libcore/launch/socket.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::Variable;

TEST(NcclReport, NamesTheVersionAndWhatTheMachineHas) {
  const test::TempDir folder;
  const std::string none = nccl_line("2.28.9", folder.path() / "missing");
  EXPECT_TRUE(none.starts_with(" > NCCL 2.28.9; network interfaces here: ")) << none;
  for (const std::string& one : outward_addresses()) EXPECT_NE(none.find(one), std::string::npos) << one;
  EXPECT_EQ(none.find("InfiniBand"), std::string::npos) << none;
  std::filesystem::create_directory(folder.path() / "mlx5_1");
  std::filesystem::create_directory(folder.path() / "mlx5_0");
  const std::string two = nccl_line("2.28.9", folder.path());
  EXPECT_NE(two.find("; InfiniBand: mlx5_0, mlx5_1; its own log (NCCL_DEBUG=INFO) names"), std::string::npos)
      << two;
}

TEST(NcclReport, NamesTheVariablesThatMayChangeResults) {
  const Variable unset("CUDA_MODULE_LOADING", ""), algorithm("NCCL_ALGO", "Ring"),
      debug("NCCL_DEBUG", "WARN"), queues("CUDA_DEVICE_MAX_CONNECTIONS", "1"), least("NCCL_MIN_CTAS", "4");
  const std::string all =
      " > variables for NCCL: CUDA_DEVICE_MAX_CONNECTIONS=1, CUDA_MODULE_LOADING=, NCCL_ALGO=Ring, "
      "NCCL_DEBUG=WARN, NCCL_MIN_CTAS=4";
  EXPECT_EQ(nccl_variables_line(false), all + "; NCCL_ALGO, NCCL_MIN_CTAS may change the order of sums");
  EXPECT_EQ(nccl_variables_line(true), all);
}

}  // namespace
}  // namespace megalith
