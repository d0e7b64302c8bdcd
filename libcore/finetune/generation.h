#pragma once

#include "libcore/finetune/finetune.h"
#include "libcore/finetune/finetune_config.h"
#include "libcore/finetune/text_scores.h"
#include "libcore/finetune/tuning_method.h"
#include "libcore/io/run/stop_signal.h"

namespace megalith {

/// The maximum number of tokens of an answer, for a model with this many positions for prompt and answer. It
/// is
/// --max-new-tokens, with kUsage if not even a prompt of one token fits as well; otherwise --tgt-length or
/// 128, but at most half of the positions, with a warning.
int64_t answer_length(const FinetuneConfig& config, int64_t positions);

/// Lets a model answer the prompts of the evaluation records, greedily, on the CPU and in this process alone,
/// with at most sets.answer_tokens tokens each. The answers go to OUTPUT/generated_predictions.jsonl
/// ("prompt", "predict", "label"), their scores to OUTPUT/predict_results.json and to the log. Both files
/// appear (the scores last) once all prompts are answered, and not if `stop` asked to end earlier. A prompt
/// is cut at its beginning, with a warning, so that there is room for an answer. An answer ends where those
/// of `sets.records` do. Errors are those of read_records() and LoadedModel.
void generate_answers(const FinetuneConfig& config, const TuningSets& sets, const TunedModel& tuned,
                      const StopSignal& stop);

}  // namespace megalith
