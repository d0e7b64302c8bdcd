#pragma once

#include <optional>
#include <string>

#include "libcore/convert/sources/model_source.h"
#include "libcore/convert/sources/model_view.h"
#include "libcore/json/json.h"

namespace megalith {

/// The type to write that an option names: fp32, bf16 or fp16; empty for any other word, and for none.
inline std::optional<DType> named_dtype(const std::optional<std::string>& option) {
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16})
    if (option == name_of(dtype)) return dtype;
  return {};
}

/// What is converted, and how.
struct Conversion {
  const ModelSource& source;
  TokenizerFolder tokenizer_folder = {};  // empty if there is no tokenizer
  std::optional<DType> dtype = {};        // type to write; empty: each parameter keeps its type
  const TensorFile* tensors = nullptr;    // the tensors, under our names; null: those of the source
  Json generation = {};                   // generation_config.json; null: that of the source
  std::string eod = {};                   // the token that ends a document; empty: that of the source
  bool overwrite = false;                 // allows replacing what an earlier conversion wrote
  bool check = false;  // run source and output on a few tokens and compare them before the output appears
  const TensorFile& file() const { return tensors ? *tensors : source.tensors(); }
  DType dtype_of(const StoredTensor& tensor) const { return dtype.value_or(*tensor.dtype); }
  /// Whether parameters lose bits when they are converted. The sum with an adapter is computed in fp32.
  bool rounds() const { return (tensors || main_dtype() != source.dtype()) && main_dtype() != DType::kF32; }
  /// The model to convert. Its rows are in the order of the source's files; if `tensors` is set, in our
  /// order.
  ModelView view() const { return tensors ? our_view(*tensors, source.config()) : source.view(); }
  const std::string& end_token() const { return eod.empty() ? source.tokenizer().eod : eod; }
  DType main_dtype() const { return dtype.value_or(source.dtype()); }
};

}  // namespace megalith
