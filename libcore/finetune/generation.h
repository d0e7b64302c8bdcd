#pragma once

#include "libcore/finetune/finetune_config.h"
#include "libcore/finetune/text_scores.h"
#include "libcore/finetune/tuning_method.h"
#include "libcore/io/stop_signal.h"

namespace megalith {

/// Answers the prompts of the records to evaluate on with a model, greedily, on the CPU and in this process
/// alone. The answers go to OUTPUT/generated_predictions.jsonl ("prompt", "predict", "label"), their scores
/// to OUTPUT/predict_results.json and to the log; both files appear when all prompts are answered, and not
/// when `stop` asked to end before. A prompt is cut at its beginning so that an answer has room. Errors as
/// read_records() and LoadedModel.
void generate_answers(const FinetuneConfig& config, const TunedModel& tuned, const StopSignal& stop);

}  // namespace megalith
