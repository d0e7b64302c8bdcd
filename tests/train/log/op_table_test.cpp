#include "libcore/train/log/op_table.h"

#include <gtest/gtest.h>

#include "libcore/ops/backend/backend.h"

namespace megalith {
namespace {

/// Two steps of ops whose rates are counted by hand.
OpTable table() {
  std::map<std::string, Trace::Entry> ops;
  ops["copy"] = {.calls = 2, .cost = {.flops = 0, .bytes = 3e9}, .seconds = 2};
  ops["gemm"] = {.calls = 8, .cost = {.flops = 32e9, .bytes = 1e9}, .seconds = 4};
  ops["never"] = {};
  return {ops, {.flops = 10e9, .bytes = 2e9}, 2};
}

TEST(OpTable, SaysWhatAStepTakesAndHowNearTheRoofItIs) {
  const OpTable ops = table();
  ASSERT_EQ(ops.rows.size(), 2U);  // what took no time has no rate
  const OpTable::Row &gemm = ops.rows[0], &copy = ops.rows[1];
  EXPECT_EQ(gemm.op, "gemm");
  EXPECT_DOUBLE_EQ(gemm.calls, 4);
  EXPECT_DOUBLE_EQ(gemm.ms, 2000);
  EXPECT_DOUBLE_EQ(gemm.gflops, 8);
  EXPECT_DOUBLE_EQ(gemm.gigabytes, 0.25);
  EXPECT_DOUBLE_EQ(gemm.share, 0.8);  // 3.2 s of products, of 4 s
  EXPECT_DOUBLE_EQ(copy.ms, 1000);
  EXPECT_DOUBLE_EQ(copy.share, 0.75);  // 1.5 s of reading, of 2 s
}

TEST(OpTable, IsPrintedAsLines) {
  EXPECT_EQ(table().text(),
            "ops of the traced steps; the roof is a product at 10.0 GFLOP/s, or reading at 2.0 GB/s:\n"
            "op    calls a step  ms a step  GFLOP/s  GB/s  of the roof\n"
            "gemm           4.0    2000.00      8.0   0.2         80 %\n"
            "copy           1.0    1000.00      0.0   1.5         75 %\n");
}

TEST(OpTable, IsAMemberOfATracesFile) {
  const Json json = to_json(table());
  EXPECT_EQ(json["product_gflops"].as_double(), 10);
  EXPECT_EQ(json["read_gb_per_s"].as_double(), 2);
  ASSERT_EQ(json["ops"].as_array().size(), 2U);
  EXPECT_EQ(json["ops"].as_array()[1].dump(),
            R"({"op": "copy", "calls_per_step": 1.0, "ms_per_step": 1000.0, "gflops": 0.0, "gb_per_s": 1.5, )"
            R"("share_of_roof": 0.75})");
}

TEST(Roofs, AreMeasuredByAProductAndAReading) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  const Memory memory = backend->allocate(256 * 64 * sizeof(float));
  const View matrix{memory.data.get(), DType::kF32, {256, 64}};
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    RoofShapes shapes{.rows = 96, .in = 64, .out = 128, .dtype = dtype};
    EXPECT_EQ(measure_roofs(stream, shapes).bytes, 0);
    shapes.matrix = matrix;
    const Roofs roofs = measure_roofs(stream, shapes);
    EXPECT_GT(roofs.flops, 0);
    EXPECT_GT(roofs.bytes, 0);
  }
}

}  // namespace
}  // namespace megalith
