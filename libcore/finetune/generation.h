#pragma once

#include "libcore/finetune/finetune.h"
#include "libcore/finetune/finetune_config.h"
#include "libcore/finetune/text_scores.h"
#include "libcore/finetune/tuning_method.h"
#include "libcore/io/run/stop_signal.h"

namespace megalith {

/// The maximum number of tokens of an answer, for a model with this many positions for prompt and answer. If
/// --max-new-tokens is given: that number; kUsage if no room is left for a prompt of one token. Otherwise
/// --tgt-length or 128, but at most half of the positions; a warning says when that limit applies.
int64_t answer_length(const FinetuneConfig& config, int64_t positions);

/// Lets a model answer the prompts of the evaluation records, greedily, on the CPU and in this process alone,
/// with at most sets.answer_tokens tokens each. The answers go to OUTPUT/generated_predictions.jsonl
/// ("prompt", "predict", "label"), their scores to OUTPUT/predict_results.json and to the log. Both files
/// appear (the scores last) once all prompts are answered, but not if `stop` ends the run earlier. A prompt
/// is cut at its beginning, with a warning, so that there is room for an answer. An answer ends at the tokens
/// of RecordFiles::ends(). Errors are those of read_records() and LoadedModel.
void generate_answers(const FinetuneConfig& config, const TuningSets& sets, const TunedModel& tuned,
                      const StopSignal& stop);

}  // namespace megalith
