#pragma once

#include <optional>
#include <string>

#include "libcore/convert/sources/model_source.h"
#include "libcore/convert/sources/model_view.h"
#include "libcore/json/json.h"

namespace megalith {

/// What a target writes, and from what.
struct Conversion {
  const ModelSource& source;
  TokenizerFolder tokenizer_folder = {};  // empty: none
  std::optional<DType> dtype = {};        // of all parameters; empty: each as it is stored
  const TensorFile* tensors = nullptr;    // under our names; null: the source's own
  Json generation = {};                   // generation_config.json; null: the source's
  std::string eod = {};                   // the token that ends a document; empty: the source's
  bool overwrite = false;                 // replace what an earlier conversion wrote
  bool check = false;                     // run the model on both sides before the output appears
  const TensorFile& file() const { return tensors ? *tensors : source.tensors(); }
  DType dtype_of(const StoredTensor& tensor) const { return dtype.value_or(*tensor.dtype); }
  /// Whether parameters lose bits in the conversion.
  bool rounds() const { return dtype && dtype != source.dtype() && dtype != DType::kF32; }
  /// The model to convert, in the row order of the source's files; in our order if `tensors` is set.
  ModelView view() const { return tensors ? our_view(*tensors, source.config()) : source.view(); }
  const std::string& end_token() const { return eod.empty() ? source.tokenizer().eod : eod; }
  DType main_dtype() const { return dtype.value_or(source.dtype()); }
};

}  // namespace megalith
