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
  /// Maps stored rows of the weight (columns, if transposed) to rows of the layer's result: RowRun::ours is
  /// the stored row, RowRun::theirs the row of the result. The result of QKV is all queries, all keys, all
  /// values; that of a gated layer is all gates, then all ups.
  std::vector<RowRun> runs;
};

/// The names of a layer's tensors.
struct LayerView {
  std::array<std::string, 2> norm1, norm2;  // weight and bias; bias empty: none
  std::vector<Product> qkv, proj, fc1, fc2;
};

/// A model in a file, in that file's own order of rows. The view alone defines what the model computes: the
/// check of a conversion must not use the tables by which the conversion moved the rows, or it would repeat
/// their errors.
struct ModelView {
  const TensorFile* file;
  ModelConfig config;
  bool neighbours = false;  // rotary angles apply to neighbours in a head (llama.cpp), not to its halves
  std::string words, positions = {};  // names of the embedding tables; positions empty: none
  std::vector<LayerView> layers = {};
  std::array<std::string, 2> final_norm = {};
  std::string head = {};  // the name of the words' table if the head is tied to it
};

/// A model with our names and packed rows.
ModelView our_view(const TensorFile& file, const ModelConfig& config);
/// The folder of a Hugging Face model.
ModelView hugging_face_view(const TensorFile& file, const ModelConfig& config);
/// A file of llama.cpp; `config` is that of the model that it was made from.
ModelView gguf_view(const GgufFile& file, const ModelConfig& config);

}  // namespace megalith
