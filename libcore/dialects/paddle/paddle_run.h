#pragma once

#include "libcore/config/pretrain_config.h"
#include "libcore/dialects/paddle/paddle_config.h"

namespace megalith {

/// Applies PaddleNLP's options to a run's configuration, between Options::read() and check(). `options` has
/// the fields of both among its groups, and shows which options were given under our names, which take
/// precedence. This first function settles where the run starts and saves: --resume-from-checkpoint as
/// --load; --output-dir as --save, and as --load where it has checkpoints and should not be overwritten; the
/// weights of --model-name-or-path with --continue-training. An id of a model becomes its folder. kNoInput
/// for what is missing: nothing is downloaded. check() complains about a setting that is given under both
/// names; if it concerns the start, no start is looked for.
void settle_paddle_start(PaddleConfig&, PretrainConfig&, Options& options);
/// Settles everything else, once the checkpoint's own options have been adopted: the shape and the tokenizer
/// of --model-name-or-path; --input-dir's dataset; whether there are evaluations; TensorBoard's folder.
void settle_paddle(const PaddleConfig&, PretrainConfig&, Options& options);

/// Whether a restarted run resumes from --output-dir without further options, once a checkpoint is there.
bool resumes_by_itself(const PaddleConfig&, const PretrainConfig&, const Options& options);

}  // namespace megalith
