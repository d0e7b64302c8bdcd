#pragma once

#include "libcore/config/pretrain_config.h"
#include "libcore/dialects/paddle/paddle_config.h"

namespace megalith {

/// Puts what PaddleNLP's names say into a run's configuration, between Options::read() and check(): the shape
/// and the tokenizer of --model-name-or-path, and its weights with --continue-training; --input-dir's
/// dataset; --output-dir as --save, and as --load where it has checkpoints and is not to be overwritten;
/// whether there are evaluations; TensorBoard's folder. `options` has both among its groups, and says what
/// was given by other names, which come first. kUsage for contradictions, kNoInput for what is not there,
/// since nothing is downloaded.
void settle_paddle(PaddleConfig, PretrainConfig&, Options& options);

/// Whether a run that is started again goes on from --output-dir by itself, once a checkpoint is there.
bool goes_on_by_itself(const PaddleConfig&, const PretrainConfig&, const Options& options);

}  // namespace megalith
