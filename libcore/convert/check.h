#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "libcore/convert/model_view.h"

namespace megalith {

/// Logits [tokens, vocabulary] of a model, in fp32, read layer by layer: of the weights at most a part of one
/// tensor stands in memory.
std::vector<float> logits_of(const ModelView& view, std::span<const int32_t> tokens);

/// How two models differ on a few tokens.
struct Comparison {
  int64_t tokens = 0;
  double greatest = 0;        // difference of two logits
  double greatest_logit = 0;  // magnitude in the first model
  double seconds = 0;
  uint64_t peak_bytes = 0;  // of the whole process
};
/// Runs both on the same few tokens. kData when a logit is not finite.
Comparison compare_models(const ModelView& a, const ModelView& b);
std::string text_of(const Comparison& comparison);

/// Beyond this share of the greatest logit two models that hold the same numbers are not the same: sums in
/// another order differ by 1e-6, a wrong row or angle by more than a tenth.
constexpr double kSameModel = 1e-3;

}  // namespace megalith
