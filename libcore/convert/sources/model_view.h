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

/// Part of a linear layer as a file holds it.
struct Product {
  std::string weight, bias = {};  // bias empty: none
  Shape shape;                    // of the weight, as stored
  bool transposed = false;        // [in, out]; else [..., in]
  /// Which rows of the layer's result its rows (columns, when transposed) are: stored row, row of the result,
  /// how many. The result of QKV is all queries, all keys, all values; that of a gated layer gates, then ups.
  std::vector<RowRun> runs;
};

/// The names of a layer's tensors.
struct LayerView {
  std::array<std::string, 2> norm1, norm2;  // weight and bias; bias empty: none
  std::vector<Product> qkv, proj, fc1, fc2;
};

/// A model in a file, in that file's own order of rows. What it computes follows from this alone: the check
/// of a conversion must not use the tables by which the conversion moved the rows, else it would repeat their
/// errors.
struct ModelView {
  const TensorFile* file;
  ModelConfig config;
  bool neighbours = false;            // rotary angles turn neighbours of a head (llama.cpp), not its halves
  std::string words, positions = {};  // tables of the embeddings; positions empty: none
  std::vector<LayerView> layers = {};
  std::array<std::string, 2> final_norm = {};
  std::string head = {};  // the words' table when it is tied
};

/// Our names and packed rows.
ModelView our_view(const TensorFile& file, const ModelConfig& config);
/// The folder of a Hugging Face model.
ModelView hugging_face_view(const TensorFile& file, const ModelConfig& config);
/// A file of llama.cpp; `config` of the model that it was made of.
ModelView gguf_view(const GgufFile& file, const ModelConfig& config);

}  // namespace megalith
