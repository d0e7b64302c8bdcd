#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "libcore/options/fields.h"

namespace megalith {

/// Options of `megalith-pretrain --dump-sample-order`, which prints the ids of each sample of a run without
/// training.
struct SampleOrderOptions {
  std::vector<std::string> data_path;
  int64_t seed = 1234, seq_length = 0;
  std::string split = "969, 30, 1";
  std::vector<std::string> samples;  // three words, for train, valid and test; 0 or "none": one epoch
  int64_t lines = 64;
  bool no_extra_token = false, keep_last_partial_valid = false;
  int64_t vocab_size = 50257, pad = -1;

  template <class V>
  void fields(V&& v) {
    v("data-path", data_path, "Datasets: PREFIX, or WEIGHT PREFIX pairs to blend.", required(),
      metavar("PREFIX"));
    v("seed", seed, "The seed of the shuffling.", between(0, 4294967295.0));
    v("seq-length", seq_length, "Tokens of a sample.", required(), at_least(1));
    v("split", split, "Weights of the train, valid and test parts.", metavar("A,B,C"));
    v("samples", samples, "Samples to draw from train, valid and test; 0 or none: one epoch.", required(),
      metavar("N"));
    v("n", lines, "Samples to print of each part.", at_least(0));
    v("no-extra-token", no_extra_token, "Samples of --seq-length ids, without the last label.");
    v("keep-last-partial-valid", keep_last_partial_valid, "Keep and pad the last validation sample.");
    v("vocab-size", vocab_size, "The last of these ids ends a document.", at_least(1));
    v("pad", pad, "Id that fills a partial sample; -1: none.", at_least(-1));
  }
  void validate(Problems&) const;
};

/// Prints one fact a line:
///   config JSON
///   split NAME CLASS len N                     or: split NAME None
///   index NAME KIND DTYPE SHAPE SHA256         as numpy would store it
///   sample NAME I SHA256 SEQUENCES FIRST…      hash of the ids as little-endian 64-bit integers; first eight
/// kUsage, kNoInput, kData.
void dump_sample_order(const SampleOrderOptions& options, std::ostream& out);

extern template std::vector<Field> fields_of<SampleOrderOptions>(SampleOrderOptions&);

}  // namespace megalith
