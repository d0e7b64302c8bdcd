#pragma once

#include <map>
#include <string>
#include <vector>

#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/checkpoint/slice.h"
#include "libcore/checkpoint/tensor_file.h"

namespace megalith::test {

/// Fills part `part` of renamed.theirs (f32) from our tensor, element by element.
inline void to_theirs(const RenamedTensor& renamed, size_t part, ConstView ours, View theirs) {
  const PartRows layout = part_rows(renamed, part);
  for (const RowRun& run : layout.runs)
    for (int64_t row = 0; row < run.rows; ++row)
      for (int64_t column = 0; column < layout.columns; ++column) {
        const int64_t there = run.theirs + row, at = layout.transposed ? column * layout.rows() + there
                                                                       : there * layout.columns + column;
        theirs.as<float>()[at] = ours.as<float>()[(run.ours + row) * layout.columns + column];
      }
}

/// A tensor file in memory, f32.
class MemoryTensors final : public TensorFile {
 public:
  explicit MemoryTensors(std::map<std::string, std::pair<Shape, std::vector<float>>> values)
      : values_(std::move(values)) {
    for (const auto& [name, value] : values_) {
      const Shape& shape = value.first;
      tensors_.push_back({.name = name,
                          .dtype_name = "fp32",
                          .dtype = DType::kF32,
                          .extents = {shape.dim.begin(), shape.dim.begin() + shape.rank}});
    }
  }
  const std::string& path() const override { return path_; }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void read(const Box& box, View out) const override {
    const auto& [shape, data] = values_.at(checked(box, out).name);
    copy_block({data.data(), DType::kF32, shape}, box.offset, out, Box::whole({}, out.shape).offset,
               out.shape);
  }

 private:
  std::string path_ = "memory";
  std::map<std::string, std::pair<Shape, std::vector<float>>> values_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace megalith::test
