#include "libcore/base/machine/gpus.h"

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

// The form of a file "information" is that of the driver 550.54.
TEST(NvidiaGpus, AreNamedInTheOrderOfTheirBus) {
  const TempDir folder;
  for (const auto& [bus, name] :
       {std::pair{"0000:9b:00.0", "NVIDIA A100-SXM4-80GB"}, {"0000:19:00.0", "NVIDIA H100 80GB HBM3"}}) {
    make_directories((folder / bus));
    write_file(
        folder / bus + "/information",
        "Model: \t\t " + std::string(name) + "\nIRQ:   \t\t 18\nBus Type: \t PCIe\nDevice Minor: \t 0\n");
  }
  make_directories(folder / "0000:aa:00.0");  // a GPU that another process is resetting has no file
  EXPECT_EQ(nvidia_gpus(folder.path()),
            (std::vector<std::string>{"NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"}));
}

TEST(NvidiaGpus, AreNoneWithoutADriver) {
  const TempDir folder;
  EXPECT_EQ(nvidia_gpus(folder / "none"), std::vector<std::string>());
}

}  // namespace
}  // namespace megalith::test
