#include "libcore/plan/device/machine.h"

#include <ctime>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"

namespace megalith {
namespace {

TEST(AcceleratorList, KnowsTheDocumentedNames) {
  const AcceleratorList list = AcceleratorList::installed();
  for (const char* name : {"h100", "a100-80", "h200", "b200", "910b", "mi300x"})
    EXPECT_GT(list.find(name).half_flops, 0) << name;
  EXPECT_EQ(list.find("gb200").link_domain, 72);
  EXPECT_EQ(list.find("A100-80GB").memory, 85e9);
  EXPECT_EQ(list.find("h100-80").name, "H100-SXM-80GB");
  const test::LogLines lines;
  EXPECT_EQ(list.find("v100-sxm2").name, "V100-SXM2-32GB");
  ASSERT_EQ(lines.lines.size(), 1U);
  EXPECT_EQ(lines.lines[0].find("--gpu v100-sxm2: V100-SXM2-32GB, of the 2 that begin so"), 0U)
      << lines.lines[0];
}

TEST(AcceleratorList, SuggestsTheNearestNameAsItIsWritten) {
  const auto refusal = [](const char* name) -> std::string {
    try {
      AcceleratorList::installed().find(name);
    } catch (const Error& error) {
      return error.what();
    }
    return "found";
  };
  EXPECT_EQ(refusal("H1000").find("--gpu \"H1000\" is not known; did you mean \"h100\"?\n  known are "), 0u)
      << refusal("H1000");
  EXPECT_EQ(refusal("B2OO-180GB").find("--gpu \"B2OO-180GB\" is not known; did you mean \"B200-180GB\"?"),
            0u);
  EXPECT_EQ(refusal("tpu").find("--gpu \"tpu\" is not known\n  known are "), 0u) << refusal("tpu");
  EXPECT_NE(refusal("tpu").find("a100-80, "), std::string::npos) << refusal("tpu");
}

TEST(AcceleratorList, TakesTheUsersDevicesFirst) {
  const test::TempDir folder;
  const std::string path = folder / "mine.yaml";
  write_file(path, "H100-SXM-80GB: [900, 60, 1800, 0, 80, 3, 400, 8, 100, 132, 600]\nmine: H100-SXM-80GB\n");
  AcceleratorList list = AcceleratorList::installed();
  list.add_file(path);
  EXPECT_EQ(list.find("h100-sxm-80gb").half_flops, 900e12);
  EXPECT_EQ(list.find("mine").network_bandwidth, 12.5e9);
}

TEST(AcceleratorList, FollowsShortNamesOfShortNames) {
  const test::TempDir folder;
  const std::string path = folder / "mine.yaml";
  write_file(path,
             "ours: mine\nmine: h200\nH200: h200\nloop: loop\nhere: there\nthere: here\nlost: nowhere\n");
  AcceleratorList list = AcceleratorList::installed();
  list.add_file(path);
  EXPECT_EQ(list.find("ours").name, "H200-141GB");
  const auto refusal = [&](const char* name) -> std::string {
    try {
      return list.find(name).name;
    } catch (const Error& error) {
      return error.what();
    }
  };
  // A short name that refers to itself is ignored if a device has this name.
  EXPECT_EQ(refusal("h200"), "H200-141GB");
  EXPECT_EQ(
      refusal("loop").find(path + ":4: the short name \"loop\" stands for \"loop\", which is not a device"),
      0u)
      << refusal("loop");
  EXPECT_NE(refusal("here").find(", which leads back to it; one of them must name a device"),
            std::string::npos)
      << refusal("here");
  EXPECT_EQ(refusal("lost").find(path +
                                 ":7: the short name \"lost\" stands for \"nowhere\", which is not a device"),
            0u)
      << refusal("lost");
}

// Reading 80,000 entries once took 8.9 seconds.
TEST(AcceleratorList, ReadsManyDevicesAndTakesTheLastFirst) {
  const test::TempDir folder;
  std::string text;
  for (int i = 0; i < 80000; ++i) text += concat("gpu", i, ": H100-SXM-80GB\n");
  for (const char* const name : {"Mine-A", "Mine-B"})
    text += concat(name, ": [900, 60, 1800, 0, 80, 3, 400, 8, 100, 132, 600]\n");
  write_file(folder / "mine.yaml", text);
  AcceleratorList list = AcceleratorList::installed();
  const std::clock_t begin = std::clock();
  list.add_file(folder / "mine.yaml");
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 4);
  EXPECT_EQ(list.devices()[0].name, "Mine-B");
  EXPECT_EQ(list.devices()[1].name, "Mine-A");
  EXPECT_EQ(list.names()[0], "gpu79999");
  EXPECT_EQ(list.find("gpu7").name, list.find("H100-SXM-80GB").name);
}

// A device of a user's file need not say what it can do.
TEST(AcceleratorList, ReadsWhatADeviceCanDo) {
  const test::TempDir folder;
  write_file(folder / "mine.yaml",
             "Plain: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n"
             "Old: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, none]\n"
             "New: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, sm120, tp-overlap, flash]\n");
  AcceleratorList list;
  list.add_file(folder / "mine.yaml");
  const Accelerator &plain = list.find("Plain"), &old = list.find("Old"), &fresh = list.find("New");
  EXPECT_TRUE(plain.flash && plain.tensor_overlap && plain.bfloat16);
  EXPECT_FALSE(old.flash || old.tensor_overlap || old.bfloat16);
  EXPECT_EQ(old.compute_capability, 0);
  EXPECT_TRUE(fresh.flash && fresh.tensor_overlap);
  EXPECT_EQ(fresh.compute_capability, 120);
}

// flash-attention's README: Ampere and later. A GeForce has no peer to peer since the RTX 30.
TEST(AcceleratorList, KnowsWhatTheListedDevicesCanDo) {
  const AcceleratorList list = AcceleratorList::installed();
  for (const Accelerator& device : list.devices()) {
    const bool geforce = device.name.starts_with("RTX"), volta = device.name.starts_with("V100");
    const bool nvidia = !device.name.starts_with("MI") && !device.name.starts_with("Ascend");
    EXPECT_EQ(device.flash, !volta) << device.name;
    EXPECT_EQ(device.tensor_overlap, nvidia && !geforce) << device.name;
    EXPECT_EQ(device.compute_capability > 0, nvidia) << device.name;
  }
}

// The names that vendors' data sheets and tools print.
TEST(AcceleratorList, KnowsTheNamesOfDataSheets) {
  for (const auto& [name, device] :
       {std::pair{"H200-SXM", "H200-141GB"}, std::pair{"H100-SXM", "H100-SXM-80GB"},
        std::pair{"H100 80GB HBM3", "H100-SXM-80GB"}, std::pair{"A100-SXM4-80GB", "A100-SXM-80GB"},
        std::pair{"B200-SXM", "B200-180GB"}, std::pair{"GB200-NVL72", "GB200-186GB"},
        std::pair{"GeForce RTX 4090", "RTX4090-24GB"}, std::pair{"Ascend-910B", "Ascend910B-64GB"},
        std::pair{"L40S", "L40S-48GB"}, std::pair{"H100 SXM5", "H100-SXM-80GB"},
        std::pair{"A100-SXM4", "A100-SXM-80GB"}, std::pair{"H800-SXM", "H800-80GB"}})
    EXPECT_EQ(find_accelerator(name).name, device) << name;
}

TEST(AcceleratorList, RefusesLinesThatAreNoDevice) {
  const test::TempDir folder;
  const std::string path = folder / "mine.yaml";
  const auto complaint = [&](const std::string& text) -> std::string {
    write_file(path, text);
    AcceleratorList list;
    try {
      list.add_file(path);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(complaint("X: [1, 2]\n").find("\"X\" has 2 values, wanted 11"), std::string::npos)
      << complaint("X: [1, 2]\n");
  EXPECT_NE(complaint("X: [1, 2, 3, 4, 5, 6, seven, 8, 9, 10, 11]\n").find("value 7 is \"seven\""),
            std::string::npos);
  EXPECT_NE(complaint("X: [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]\n").find("value 1 must be greater than 0"),
            std::string::npos);
  // Reports on stdout show the name of a device.
  for (const char* name : {"A\\nB", "A\\tB", "A\\e[31mB", "A\\u202eB"})
    EXPECT_NE(complaint(concat("\"", name, "\": [900, 60, 1800, 0, 80, 3, 400, 8, 100, 132, 600]\n"))
                  .find("has characters that no report can show"),
              std::string::npos)
        << name;
}

}  // namespace
}  // namespace megalith
