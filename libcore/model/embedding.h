#pragma once

#include "libcore/config/model_config.h"
#include "libcore/model/ctx.h"
#include "libcore/model/params.h"

namespace megalith {

/// The name of the table of word embeddings, which a tied head shares.
inline constexpr const char* kWordEmbeddings = "embedding.word_embeddings.weight";

/// The rows of one rank's part of a vocabulary table: without tensor parallelism all V of them, with it an
/// equal share of the padded vocabulary (ModelConfig::padded_vocab). Both are rounded up if
/// VocabularyForm::padded is set.
int64_t vocabulary_rows(const ModelConfig&, const TensorSplit&);
/// Declares the vocabulary table `name` [V, h], sharded by rows. The global shape has no padding, so
/// checkpoints and initial weights are the same for every number of ranks and on every device.
Param& declare_vocabulary(ParamTable&, const TensorSplit&, const ModelConfig&, const std::string& name);
/// The number of rows of a vocabulary table's local part that belong to real ids; the rows after them are
/// padding.
int64_t true_rows(const Param&);

/// Word embeddings sharded over the vocabulary, learned positions if the model has them, dropout.
class TokenEmbedding {
 public:
  TokenEmbedding(ParamTable&, const TensorSplit&, const ModelConfig&);

  void forward(const Ctx&, View y, ConstView tokens) const;  // y [s', b, h], tokens [s, b]
  void backward(const Ctx&, ConstView dy, ConstView tokens) const;
  /// For generation: y [t, b, h] of tokens at positions first_position, first_position + 1, ...; no dropout.
  void at(const Ctx&, View y, ConstView tokens, int64_t first_position) const;

 private:
  void look_up(const Ctx&, View y, ConstView tokens, const RowPositions&) const;
  RowPositions rows(const Ctx&, int64_t s) const;  // positions of this rank's s rows
  DropoutKey dropout(const Ctx&, ConstView y) const;

  float dropout_;
  float multiplier_;
  Param* words_;
  Param* positions_ = nullptr;
  int64_t first_position_;  // of a training sequence: the length of the TuningPlan's prefix
};

}  // namespace megalith
