#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// A number of steps, and the samples in them.
struct CountedSteps {
  int64_t steps = 0, samples = 0;
};

/// A level of --step-batch-size-schedule: the global batch of the steps that begin after at least `from`
/// samples and before the next level.
struct BatchLevel {
  int64_t from = 0, batch = 0;
  bool operator==(const BatchLevel&) const = default;
};

/// What a --step-batch-size-schedule says: levels in ascending order, the first from 0; or what is wrong with
/// it, in words for a message.
struct BatchSchedule {
  std::vector<BatchLevel> levels = {};
  std::string wrong = {};

  int64_t largest() const;  // of all levels' batches; 0: no level
};

/// Reads "0:768 250B:1536": pairs THRESHOLD:BATCH with blanks or commas between, where K, M, B and T after a
/// number stand for 1e3, 1e6, 1e9 and 1e12. A threshold is a number of tokens, and is rounded down to whole
/// samples of `seq_length` tokens; if that is 0, it is a number of samples. The rules are those of Megatron's
/// StepBatchsizeNumMicroBatchesCalculator (core/num_microbatches_calculator.py). An empty text has no level.
BatchSchedule parse_batch_schedule(std::string_view text, int64_t seq_length);

/// The batch of the step that begins after `consumed` samples. There must be a level.
int64_t batch_at(std::span<const BatchLevel> levels, int64_t consumed);

/// Counts the steps that begin after `consumed` samples or later: at most `max_steps`, and only those that
/// end within `samples` samples. Takes time by the number of levels, not of steps.
CountedSteps steps_in_levels(std::span<const BatchLevel> levels, int64_t consumed, int64_t max_steps,
                             int64_t samples);

}  // namespace megalith
