#pragma once

#include "libcore/config/pretrain_config.h"
#include "libcore/dialects/paddle/paddle_config.h"

namespace megalith {

/// Applies PaddleNLP's options to a run's configuration, between Options::read() and check(): the shape and
/// the tokenizer of --model-name-or-path, and its weights with --continue-training; --input-dir's dataset;
/// --output-dir as --save, and as --load where it has checkpoints and should not be overwritten; whether
/// there are evaluations; TensorBoard's folder. `options` has both among its groups, and shows which options
/// were given under our names, which take precedence. kUsage for contradictions, kNoInput for what is
/// missing: nothing is downloaded.
void settle_paddle(PaddleConfig, PretrainConfig&, Options& options);

/// Whether a restarted run resumes from --output-dir without further options, once a checkpoint is there.
bool goes_on_by_itself(const PaddleConfig&, const PretrainConfig&, const Options& options);

}  // namespace megalith
