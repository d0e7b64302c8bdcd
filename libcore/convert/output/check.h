#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libcore/convert/sources/model_view.h"

namespace megalith {

struct CheckRun {
  int threads = 1;                          // that read and multiply
  const std::atomic<bool>* stop = nullptr;  // looked at before each layer
};
/// Logits [tokens, vocabulary] of a model, in fp32, read layer by layer: of the weights at most a part of one
/// tensor stands in memory. Empty when it was stopped.
std::vector<float> logits_of(const ModelView& view, std::span<const int32_t> tokens,
                             const CheckRun& run = {});

/// What a model computes of the check's tokens.
struct CheckedSide {
  std::string path;           // of the model
  std::vector<float> logits;  // empty: stopped
  int64_t tokens = 0;
  double seconds = 0;
};
/// Runs the model on a few tokens, the same for every model of its vocabulary. A warning when a logit is not
/// finite.
CheckedSide checked_side(const ModelView& view, const CheckRun& run = {});
/// When nothing else is left to do.
constexpr int kCheckThreads = 2;

/// How two models differ on a few tokens. Logits that are finite in neither differ by nothing; in one,
/// without end.
struct Comparison {
  int64_t tokens = 0;
  double greatest = 0;        // difference of two logits
  double greatest_logit = 0;  // magnitude in the first model
  double seconds = 0;         // of both sides together
  uint64_t peak_bytes = 0;    // of the whole process
};
Comparison compare_sides(const CheckedSide& a, const CheckedSide& b);
std::string text_of(const Comparison& comparison);

/// Beyond this share of the greatest logit two models that hold the same numbers are not the same: sums in
/// another order differ by 1e-6, a wrong row or angle by more than a tenth.
constexpr double kSameModel = 1e-3;

}  // namespace megalith
