#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "libcore/checkpoint/gguf/gguf.h"
#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/config/model_config.h"

namespace megalith {

/// A part of a linear layer as a file holds it.
struct Product {
  std::string weight, bias = {};  // bias empty: none
  Shape shape;                    // of the weight, as stored
  bool transposed = false;        // [in, out]; else [..., in]
  /// Which rows of the layer's result its rows (columns, if transposed) are: stored row, row of the result,
  /// how many. The result of QKV is all queries, all keys, all values; that of a gated layer is gates, then
  /// ups.
  std::vector<RowRun> runs;
};

/// The names of a layer's tensors.
struct LayerView {
  std::array<std::string, 2> norm1, norm2;  // weight and bias; bias empty: none
  std::vector<Product> qkv, proj, fc1, fc2;
};

/// A model in a file, in that file's own order of rows. This alone defines what it computes: the check of a
/// conversion must not use the tables by which the conversion moved the rows, or it would repeat their
/// errors.
struct ModelView {
  const TensorFile* file;
  ModelConfig config;
  bool neighbours = false;  // rotary angles apply to neighbours in a head (llama.cpp), not to its halves
  std::string words, positions = {};  // embedding tables; positions empty: none
  std::vector<LayerView> layers = {};
  std::array<std::string, 2> final_norm = {};
  std::string head = {};  // the words' table if it is tied
};

/// A model with our names and packed rows.
ModelView our_view(const TensorFile& file, const ModelConfig& config);
/// The folder of a Hugging Face model.
ModelView hugging_face_view(const TensorFile& file, const ModelConfig& config);
/// A file of llama.cpp; `config` is that of the model that it was made from.
ModelView gguf_view(const GgufFile& file, const ModelConfig& config);

}  // namespace megalith
