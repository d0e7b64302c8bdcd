#include "libcore/generate/sources/weight_store.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "libcore/checkpoint/native/params_io.h"
#include "tests/support/tiny_model.h"

namespace megalith {
namespace {

using test::TinyModel;

/// Presents a model's parameters as a tensor file, in the requested types.
class ModelFile final : public TensorFile {
 public:
  ModelFile(const TinyModel& model, DType matrices, bool in_place) : model_(model), in_place_(in_place) {
    for (const Param& param : model.table.all()) {
      if (!param.tie.empty()) continue;
      StoredTensor tensor{.name = param.name, .dtype_name = "", .dtype = matrices, .extents = {}};
      for (int axis = 0; axis < param.global.rank; ++axis) tensor.extents.push_back(param.global[axis]);
      tensors_.push_back(std::move(tensor));
      std::vector<std::byte> bytes(static_cast<size_t>(param.global.elements()) * size_of(matrices));
      Stream stream = model.stream;
      stream.copy(View{bytes.data(), matrices, param.global}, param.value);
      bytes_[param.name] = std::move(bytes);
    }
    std::sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  }
  const std::string& path() const override { return path_; }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void read(const Box& box, View out) const override {
    Stream stream = model_.stream;
    stream.copy(out, {bytes_.at(box.name).data(), *at(box.name).dtype, box.global});
  }
  ConstView mapped(const Box& box) const override {
    if (!in_place_) return {};
    return {bytes_.at(box.name).data(), *at(box.name).dtype, box.global};
  }

 private:
  const TinyModel& model_;
  bool in_place_;
  std::string path_ = "memory";
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::vector<std::byte>> bytes_;
};

struct Logits {
  std::vector<float> values;
  int64_t bytes, mapped;
};

/// The logits for six tokens, computed with the weights of a store.
Logits logits(const TinyModel& like, const TensorFile& file, const WeightOptions& options = {}) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream stream = backend->make_stream();
  ParamTable table;
  const Stage stage(like.stage.config(), {.count = like.stage.config().layers}, {}, table);
  const WeightStore store(file, table, stream, options);
  const std::unique_ptr<Communicator> alone = make_self_comm();
  const Region region(*alone);
  Arena scratch = make_arena(*backend, "scratch", size_t{8} << 20);
  KvCache cache(*backend, stage.config(), stage.layers(), {},
                {.batch = 1, .capacity = 6, .dtype = DType::kF32});
  const std::vector<int32_t> tokens{1, 4, 2, 8, 5, 7};
  const View out = stage.logits({.compute = stream, .tp = region, .scratch = scratch, .training = false},
                                {tokens.data(), DType::kI32, {6, 1}}, 6, cache);
  return {{out.as<float>(), out.as<float>() + out.elements()}, store.bytes(), store.mapped()};
}

/// The root mean square of the difference, divided by that of `want`.
double difference(const std::vector<float>& got, const std::vector<float>& want) {
  double apart = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    apart += std::pow(static_cast<double>(got[i]) - static_cast<double>(want[i]), 2);
    size += std::pow(static_cast<double>(want[i]), 2);
  }
  return std::sqrt(apart / size);
}

class WeightStoreTest : public testing::TestWithParam<const char*> {
 protected:
  WeightStoreTest() : model_(std::string(GetParam()) == "gpt2" ? test::tiny_gpt2() : test::tiny_llama()) {
    initialize(model_.table, model_.stream, 5);
    perturb(model_);
  }
  TinyModel model_;
};
INSTANTIATE_TEST_SUITE_P(Families, WeightStoreTest, testing::Values("gpt2", "llama"),
                         [](const auto& family) { return std::string(family.param); });

TEST_P(WeightStoreTest, ComputesWithStoredWeightsAsWithWidenedOnes) {
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
    const ModelFile file(model_, dtype, false);
    TinyModel wide(model_.stage.config());
    load_params(file, wide.table, wide.stream);
    KvCache cache(*wide.backend, wide.stage.config(), wide.stage.layers(), {}, {.batch = 1, .capacity = 6});
    const std::vector<int32_t> tokens{1, 4, 2, 8, 5, 7};
    const std::vector<float> want =
        wide.read(wide.stage.logits(wide.ctx(false), {tokens.data(), DType::kI32, {6, 1}}, 6, cache));
    EXPECT_LT(difference(logits(wide, file).values, want), 1e-6) << name_of(dtype);
  }
}

TEST_P(WeightStoreTest, UsesMatricesWhereTheyAre) {
  const Logits copied = logits(model_, ModelFile(model_, DType::kBf16, false)),
               in_place = logits(model_, ModelFile(model_, DType::kBf16, true));
  EXPECT_EQ(copied.values, in_place.values);
  EXPECT_EQ(copied.bytes, in_place.bytes);
  EXPECT_EQ(copied.mapped, 0);
  EXPECT_GT(in_place.mapped, in_place.bytes / 2);
}

// The values of a row are rounded to 127 steps, so the logits change, but little.
TEST_P(WeightStoreTest, MovesLogitsLittleIn8Bits) {
  const Logits exact = logits(model_, ModelFile(model_, DType::kF32, false)),
               narrow = logits(model_, ModelFile(model_, DType::kF32, false), {.int8 = true}),
               in_place = logits(model_, ModelFile(model_, DType::kF32, true), {.int8 = true});
  EXPECT_GT(difference(narrow.values, exact.values), 1e-5);
  EXPECT_LT(difference(narrow.values, exact.values), 0.02);
  EXPECT_EQ(narrow.values, in_place.values);
  EXPECT_LT(narrow.bytes, exact.bytes);
}

}  // namespace
}  // namespace megalith
