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
  std::string weight, bias = {};  // `bias` is empty if there is none
  Shape shape;                    // of the weight, as stored
  bool transposed = false;        // true: the weight is [in, out]; false: it is [..., in]
  /// Maps stored rows of the weight (columns, if transposed) to rows of the layer's result: RowRun::ours is
  /// the stored row, RowRun::theirs the row of the result. The result of QKV is all queries, all keys, all
  /// values; that of a gated layer is all gates, then all ups.
  std::vector<RowRun> runs;
};

/// The names of a layer's tensors.
struct LayerView {
  // Names of weight and bias of the norms before attention and feed-forward block. The bias is empty if there
  // is none; both are, if there is no such norm.
  std::array<std::string, 2> norm1, norm2;
  std::vector<Product> qkv, proj, fc1, fc2;
  // Norms of each head or, with --qk-norm-all-heads, of all heads; empty: there is none.
  std::array<std::string, 2> query_norm = {}, key_norm = {};
  std::array<std::string, 2> after1 = {}, after2 = {};  // the norms after both; empty: there are none
};

/// A model in a file, in that file's own order of rows. It alone tells the check of a conversion what the
/// model computes. The check must not use the tables by which the conversion moves rows, or it would repeat
/// their errors.
struct ModelView {
  const TensorFile* file;
  ModelConfig config;
  // rotary angles apply to neighbours in a head (llama.cpp) instead of to its halves
  bool neighbours = false;
  std::string words, positions = {};  // names of the embedding tables; `positions` is empty if there is none
  std::vector<LayerView> layers = {};
  std::array<std::string, 2> final_norm = {};
  std::string head = {};  // name of the head's weight; equal to `words` if the head is tied
};

/// The view of a model with our names and packed rows.
ModelView our_view(const TensorFile& file, const ModelConfig& config);
/// The view of a Hugging Face model.
ModelView hugging_face_view(const TensorFile& file, const ModelConfig& config);
/// The view of a llama.cpp file. `config` is the configuration of the model that was converted.
ModelView gguf_view(const GgufFile& file, const ModelConfig& config);

}  // namespace megalith
