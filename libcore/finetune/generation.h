#pragma once

#include "libcore/finetune/finetune.h"
#include "libcore/finetune/finetune_config.h"
#include "libcore/finetune/text_scores.h"
#include "libcore/finetune/tuning_method.h"
#include "libcore/io/run/stop_signal.h"

namespace megalith {

/// Most tokens of an answer of a model with so many positions for prompt and answer: --max-new-tokens, kUsage
/// when not even a prompt of one token has room beside it; else --tgt-length or 128, with a warning no more
/// than half of the positions.
int64_t answer_length(const FinetuneConfig& config, int64_t positions);

/// Answers the prompts of the records to evaluate on with a model, greedily, on the CPU and in this process
/// alone, with at most sets.answer_tokens tokens each. The answers go to
/// OUTPUT/generated_predictions.jsonl ("prompt", "predict", "label"), their scores to
/// OUTPUT/predict_results.json and to the log; they appear, the scores last, when all prompts are answered,
/// and not when `stop` asked to end before. A prompt is cut at its beginning, with a warning, so that an
/// answer has room. An answer ends where those of `sets.records` do. Errors as read_records() and
/// LoadedModel.
void generate_answers(const FinetuneConfig& config, const TuningSets& sets, const TunedModel& tuned,
                      const StopSignal& stop);

}  // namespace megalith
