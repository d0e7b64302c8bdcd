#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libcore/convert/sources/model_view.h"

namespace megalith {

struct CheckRun {
  int threads = 1;                          // threads that read and multiply
  const std::atomic<bool>* stop = nullptr;  // checked before each layer
};
/// Logits [tokens, vocabulary] of a model, in fp32. The model is read layer by layer, so that at most a part
/// of one tensor is in memory. Empty if `run.stop` became true.
std::vector<float> logits_of(const ModelView& view, std::span<const int32_t> tokens,
                             const CheckRun& run = {});

/// What a model computes for the check's tokens.
struct CheckedSide {
  std::string path;           // of the model
  std::vector<float> logits;  // empty: stopped
  int64_t tokens = 0;
  double seconds = 0;
  bool finite = true;  // whether all logits are
};
/// Runs the model on a few tokens. Models with equal vocabulary and positions get equal tokens, so that they
/// can be compared.
CheckedSide checked_side(const ModelView& view, const CheckRun& run = {});
/// The number of threads for a model that runs when nothing else is left to do.
constexpr int kCheckThreads = 2;

/// How two models differ on a few tokens.
struct Comparison {
  int64_t tokens = 0;
  int64_t compared = 0;       // logits that are finite in both models
  double max_difference = 0;  // between two logits
  double max_logit = 0;       // greatest magnitude in the first model
  double seconds = 0;         // for both models together
  uint64_t peak_bytes = 0;    // of the whole process
};
/// A logit that is finite in neither model counts as equal: a conversion must not change a damaged model
/// either. If a logit is finite in one model only, the difference is infinite.
Comparison compare_sides(const CheckedSide& a, const CheckedSide& b);
std::string text_of(const Comparison& comparison);
/// The first tensor of a model that holds a number that is not finite, and the place of that number; empty:
/// all numbers are finite. Reads the whole model.
std::string first_not_finite(const TensorFile& file);

/// If the logits differ by more than this fraction of the largest logit, the models count as different:
/// summing in another order changes them by 1e-6, a wrong row or angle by more than a tenth.
constexpr double kSameModel = 1e-3;

}  // namespace megalith
