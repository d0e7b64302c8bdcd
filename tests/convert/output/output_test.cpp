#include "libcore/convert/output/output.h"

#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/name_maps.h"

namespace megalith {
namespace {

TEST(WriteTensors, TakesThoseWithoutBytes) {
  const test::MemoryTensors source(
      {{"full", {{2, 3}, {1, 2, 3, 4, 5, 6}}}, {"no columns", {{4, 0}, {}}}, {"no rows", {{0, 4}, {}}}});
  OutputPlan plan(1);
  plan[0].name = "x.safetensors";
  for (const char* name : {"full", "no columns", "no rows"})  // in the order of the format
    for (const StoredTensor& tensor : source.tensors())
      if (tensor.name == name) {
        const Shape shape{tensor.extents[0], tensor.extents[1]};
        plan[0].tensors.push_back({name, Storage::kF32, shape, copy_recipe(name, {shape, false})});
      }
  const test::TempDir dir;
  PlacedFiles files(memory_for(plan));
  write_tensors(source, plan, create_safetensors(plan, dir.path().string(), files), files);
  const SafetensorsFile written(dir / "x.safetensors");
  EXPECT_EQ(written.tensors().size(), 3U);
  std::vector<float> values(6);
  written.read({"full", {2, 3}, {0, 0}}, {values.data(), DType::kF32, {2, 3}});
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

}  // namespace
}  // namespace megalith
