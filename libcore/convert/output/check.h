#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libcore/convert/sources/model_view.h"

namespace megalith {

struct CheckRun {
  int threads = 1;                          // number of threads that read and multiply
  const std::atomic<bool>* stop = nullptr;  // checked before each layer
};
/// The logits [tokens, vocabulary] of a model, in fp32. The model is read layer by layer, so that at most a
/// part of one tensor is in memory. Empty if `run.stop` became true.
std::vector<float> logits_of(const ModelView& view, std::span<const int32_t> tokens,
                             const CheckRun& run = {});

/// What a model computes for the check's tokens.
struct CheckedSide {
  std::string path;           // of the model
  std::vector<float> logits;  // empty if the run was stopped
  int64_t tokens = 0;
  std::chrono::steady_clock::time_point begin = {}, end = {};  // when the model was run
  bool finite = true;                                          // whether all logits are finite
};
/// Runs the model on a few tokens. Models with equal vocabulary and positions get equal tokens, so that they
/// can be compared.
CheckedSide checked_side(const ModelView& view, const CheckRun& run = {});
/// The number of threads for running a model when no other work is left that could use the processor.
constexpr int kCheckThreads = 2;

/// How two models differ on a few tokens.
struct Comparison {
  int64_t tokens = 0;
  int64_t compared = 0;       // number of logits that are finite in both models
  double max_difference = 0;  // greatest difference between two logits
  double max_logit = 0;       // greatest magnitude of a logit in the first model
  double seconds = 0;         // time that passed while one of the models or both were run
  uint64_t peak_bytes = 0;    // memory of the whole process
};
/// Compares the logits of two models. A logit that is finite in neither model counts as equal, since a
/// conversion must not change a damaged model either. If a logit is finite in one model only, the difference
/// is infinite.
Comparison compare_sides(const CheckedSide& a, const CheckedSide& b);
std::string text_of(const Comparison& comparison);
/// The name of the first tensor of a model that holds a number that is not finite, and the place of that
/// number. Empty if all numbers are finite. Reads the whole model.
std::string first_not_finite(const TensorFile& file);

/// If the logits differ by more than this fraction of the largest logit, the models count as different.
/// Adding in another order changes logits by 1e-6; a wrong row or angle changes them by more than a tenth.
constexpr double kSameModel = 1e-3;

}  // namespace megalith
