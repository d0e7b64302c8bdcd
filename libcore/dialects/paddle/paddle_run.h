#pragma once

#include "libcore/config/pretrain_config.h"
#include "libcore/dialects/paddle/paddle_config.h"

namespace megalith {

/// Applies those PaddleNLP options to `PretrainConfig` that determine where the run starts and saves. Call
/// between Options::read() and check(). `options` must hold the fields of both structs; options under our
/// names take precedence. --resume-from-checkpoint becomes --load; --output-dir becomes --save, and also
/// --load if it has checkpoints that should not be overwritten; with --continue-training, the weights of
/// --model-name-or-path are loaded. The id of a model becomes its folder. kNoInput if something is missing,
/// because nothing is downloaded. If a setting is given under both names, check() refuses it; if this
/// concerns the start, no start is looked for.
void settle_paddle_start(PaddleConfig&, PretrainConfig&, Options& options);
/// Applies PaddleNLP's other options, after the checkpoint's own options have been adopted: the shape and the
/// tokenizer of --model-name-or-path, the dataset of --input-dir, whether there are evaluations,
/// TensorBoard's folder.
void settle_paddle(const PaddleConfig&, PretrainConfig&, Options& options);

/// Whether a restarted run resumes from --output-dir without further options, if the folder holds a
/// checkpoint.
bool resumes_by_itself(const PaddleConfig&, const PretrainConfig&, const Options& options);

}  // namespace megalith
