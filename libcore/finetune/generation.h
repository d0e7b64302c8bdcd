#pragma once

#include "libcore/finetune/finetune.h"
#include "libcore/finetune/finetune_config.h"
#include "libcore/finetune/text_scores.h"
#include "libcore/finetune/tuning_method.h"
#include "libcore/io/streams/stop_signal.h"

namespace megalith {

/// The maximum number of tokens of an answer, for a model with `positions` positions for prompt and answer.
/// With --max-new-tokens it is that number; kUsage if it leaves no position for the prompt. Otherwise it is
/// --tgt-length or 128, but at most half of the positions, with a warning if this limit applies.
int64_t answer_length(const FinetuneConfig& config, int64_t positions);

/// Lets a model answer the prompts of the evaluation records, greedily, with at most sets.answer_tokens
/// tokens each. Runs on the CPU, in this process alone. Writes the answers to
/// OUTPUT/generated_predictions.jsonl ("prompt", "predict", "label"), and their scores to
/// OUTPUT/predict_results.json and to the log. Both files appear after the last prompt is answered, the
/// scores last; neither appears if `stop` ends the run earlier. The beginning of a long prompt is dropped,
/// with a warning, to leave room for an answer. An answer ends at the tokens of RecordFiles::ends(). Throws
/// what read_records() and LoadedModel throw.
void generate_answers(const FinetuneConfig& config, const TuningSets& sets, const TunedModel& tuned,
                      const StopSignal& stop);

}  // namespace megalith
