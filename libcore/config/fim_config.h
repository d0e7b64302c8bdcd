#pragma once

#include <optional>
#include <string>

#include "libcore/options/fields.h"

namespace megalith {

/// Fill-in-the-middle in training data (train/data/fim.h). Names and defaults are those of Megatron-LM's
/// --fim-data.
struct FimConfig {
  bool on = false;
  double rate = 0.5, spm_rate = 0.5;
  std::optional<std::string> split_sample;  // a token between the fragments of a document
  std::optional<double> fragment_rate;      // for each fragment, given with split_sample
  std::optional<std::string> no_prefix;
  std::string prefix = "<fim_prefix>", middle = "<fim_middle>", suffix = "<fim_suffix>", pad = "<fim_pad>";
  std::string eod = "<|endoftext|>";

  template <class V>
  void fields(V&& v) {
    v("fim-data", on,
      "Move the middle of documents to their end (fill in the middle), by the options --fim-*.");
    v("fim-rate", rate, "Probability that a document of a sample is changed.", between(0, 1));
    v("fim-spm-rate", spm_rate,
      "Probability that a changed document has its suffix before its prefix, not after it.", between(0, 1));
    v("fim-split-sample", split_sample,
      "A token that separates fragments, such as the files of a repository: --fim-rate then chooses "
      "documents, "
      "and --fim-fragment-rate the fragments in them that are changed.",
      metavar("TOKEN"));
    v("fim-fragment-rate", fragment_rate, "Probability that a fragment of a chosen document is changed.",
      between(0, 1));
    v("fim-no-prefix", no_prefix, "Do not change documents, or fragments, that begin with this text.",
      metavar("TEXT"));
    v("fim-prefix-token", prefix, "The token before a prefix.", metavar("TOKEN"));
    v("fim-middle-token", middle, "The token before a middle.", metavar("TOKEN"));
    v("fim-suffix-token", suffix, "The token before a suffix.", metavar("TOKEN"));
    v("fim-pad-token", pad, "The token that fills a sample that has become shorter.", metavar("TOKEN"));
    v("fim-eod-token", eod, "The token that ends a document.", metavar("TOKEN"));
  }
  void validate(Problems&) const;
};

extern template std::vector<Field> fields_of<FimConfig>(FimConfig&);

}  // namespace megalith
