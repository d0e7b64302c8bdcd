#include "libcore/dialects/ddp_tutorial/pth_file.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/checkpoint/torch/torch_file.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using Blocks = std::vector<std::pair<int64_t, int64_t>>;  // first row and number of rows of each call

/// Writes a tensor [5, 3] with the values 0 to 14, `block_rows` rows at a time, and returns the calls.
Blocks write_counted(const std::string& path, int64_t block_rows) {
  Blocks blocks;
  PthFile file(path);
  file.pickle().begin_dict();
  file.pickle().text("t");
  file.tensor(
      {.name = "t", .dtype = DType::kF32, .shape = {5, 3}},
      [&blocks](View out, int64_t first) {
        blocks.emplace_back(first, out.shape[0]);
        for (int64_t i = 0; i < out.elements(); ++i)
          static_cast<float*>(out.data)[i] = static_cast<float>(first * 3 + i);
      },
      block_rows);
  file.pickle().end_dict();
  file.write();
  return blocks;
}

TEST(PthFile, MakesATensorInBlocksOfRows) {
  const test::TempDir dir;
  EXPECT_EQ(write_counted(dir / "t.pth", 0), (Blocks{{0, 5}}));
  const std::string whole = read_file(dir / "t.pth");
  EXPECT_EQ(write_counted(dir / "t.pth", 2), (Blocks{{0, 2}, {2, 2}, {4, 1}}));
  EXPECT_EQ(read_file(dir / "t.pth"), whole);
  const TorchFile file = open_torch(dir / "t.pth");  // also compares the checksum with the bytes
  ASSERT_EQ(file.tensors.size(), 1u);
  std::vector<float> values(15);
  copy_tensor(file.tensors[0], {0, 0}, View{values.data(), DType::kF32, {5, 3}}, {0, 0}, {5, 3});
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<float>(i)) << i;
}

}  // namespace
}  // namespace megalith
