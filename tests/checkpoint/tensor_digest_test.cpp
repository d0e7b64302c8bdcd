#include "libcore/checkpoint/tensor_digest.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

/// fp32 tensors in memory.
class Tensors final : public TensorFile {
 public:
  void put(const std::string& name, const std::vector<int64_t>& extents) {
    tensors_.push_back({name, "F32", DType::kF32, extents});
    std::vector<float>& values = values_[name];
    values.resize(static_cast<size_t>(tensors_.back().shape().elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  }
  std::vector<float>& values(const std::string& name) { return values_[name]; }

  const std::string& path() const override { return path_; }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void read(const Box& box, View out) const override {
    const std::vector<float>& values = values_.at(box.name);
    const Shape whole = box.global;
    copy_block(ConstView{values.data(), DType::kF32, whole}, box.offset, out,
               Box::whole({}, out.shape).offset, out.shape);
    read_ += out.shape.elements();
  }
  std::optional<std::string> checksums() const override { return checksums_; }

  std::optional<std::string> checksums_ = {};
  mutable int64_t read_ = 0;

 private:
  std::string path_ = "here";
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::vector<float>> values_;
};

Tensors sample() {
  Tensors file;
  file.put("a", {3, 5});
  file.put("b", {2, 2, 4});
  file.put("c", {7});
  return file;
}

TEST(TensorDigest, CoversEveryValueOfSmallTensors) {
  const std::string sound = tensor_digest(sample());
  EXPECT_EQ(sound.size(), 16U);
  EXPECT_EQ(tensor_digest(sample(), 7), sound);  // nothing is left out, so nothing is drawn
  for (const auto& [name, count] : {std::pair<std::string, size_t>{"a", 15}, {"b", 16}, {"c", 7}})
    for (size_t i = 0; i < count; ++i) {
      Tensors other = sample();
      other.values(name)[i] += 1;
      EXPECT_NE(tensor_digest(other), sound) << name << i;
    }
}

TEST(TensorDigest, CoversNamesAndShapes) {
  Tensors renamed, turned, fewer = sample();
  renamed.put("a", {3, 5});
  renamed.put("b", {2, 2, 4});
  renamed.put("d", {7});
  turned.put("a", {5, 3});
  turned.put("b", {2, 2, 4});
  turned.put("c", {7});
  fewer.put("e", {0});
  EXPECT_EQ(
      (std::set{tensor_digest(sample()), tensor_digest(renamed), tensor_digest(turned), tensor_digest(fewer)})
          .size(),
      4U);
}

TEST(TensorDigest, DrawsWhatItReadsOfLargeTensors) {
  Tensors file;
  file.put("a", {64, 5000});
  file.put("c", {500, 2, 8});
  file.put("b", {100000});
  std::set<std::string> drawn;
  for (uint64_t seed = 0; seed < 8; ++seed) drawn.insert(tensor_digest(file, seed));
  EXPECT_EQ(drawn.size(), 8U);
  EXPECT_EQ(file.read_, 8 * 3 * kDigestValues);
  EXPECT_EQ(tensor_digest(file, 3), tensor_digest(file, 3));
  const std::string sound = tensor_digest(file);
  for (const char* name : {"a", "b", "c"}) {
    Tensors other = file;
    for (float& value : other.values(name)) value = -value - 1;
    EXPECT_NE(tensor_digest(other), sound) << name;
  }
}

TEST(TensorDigest, IsThatOfTheChecksumsWhereThereAreAny) {
  Tensors file = sample(), other = sample();
  file.checksums_ = other.checksums_ = "x";
  other.values("a")[0] = 9;
  EXPECT_EQ(tensor_digest(file), tensor_digest(other));
  EXPECT_EQ(file.read_, 0);
  other.checksums_ = "y";
  EXPECT_NE(tensor_digest(file), tensor_digest(other));
}

}  // namespace
}  // namespace megalith
