#include "libcore/config/pretrain_config.h"

#include "libcore/config/precedence.h"

namespace megalith {
namespace {

/// An interleaved pipeline processes its micro-batches in groups as large as its number of ranks
/// (plan_pipeline).
void check_interleaving(const PretrainConfig& config, Problems& problems) {
  const ParallelConfig& parallel = config.parallel;
  const int64_t step = int64_t{config.train.micro_batch} * parallel.data;
  const int64_t batch = config.train.global_batch;
  if (step > 0 && parallel.chunks(config.model.layers) > 1)
    for (const BatchLevel& level : config.train.batch_levels())
      if (level.batch % step == 0 && level.batch / step % parallel.pipeline != 0)
        problems.add(Opt{"step-batch-size-schedule"}, ": ", level.batch, " gives each rank ",
                     level.batch / step, " micro-batches, not a multiple of ",
                     Opt{"pipeline-model-parallel-size"}, ' ', parallel.pipeline,
                     ", as an interleaved pipeline requires");
  if (!config.train.batch_schedule.empty()) return;
  if (step == 0 || batch % step != 0 || parallel.chunks(config.model.layers) == 1) return;
  if (const auto ramp = config.train.ramp())
    for (const int64_t part : {ramp->start, ramp->increment})
      if (part % step == 0 && part / step % parallel.pipeline != 0)
        problems.add(Opt{"rampup-batch-size"}, ": ", part, " gives each rank ", part / step,
                     " micro-batches, not a multiple of ", Opt{"pipeline-model-parallel-size"}, ' ',
                     parallel.pipeline, ", as an interleaved pipeline requires");
  if (batch / step % parallel.pipeline != 0)
    problems.add(Opt{"global-batch-size"}, ' ', batch, " gives each rank ", batch / step,
                 " micro-batches, not a multiple of ", Opt{"pipeline-model-parallel-size"}, ' ',
                 parallel.pipeline, ", as an interleaved pipeline requires",
                 nearest_multiples(batch, step * parallel.pipeline));
}

}  // namespace

void PretrainConfig::add_to(Options& options) {
  options.add("Model", model).add("Parallelism", parallel).add("Training", train);
  options.add("Data", data).add("Tokenizer", tokenizer).add("Checkpoints", checkpoint);
  options.derive([this, &options] {
    set_aside_contradicted(train, options);
    data.read_words();
    train.tokens_of_a_sample = model.seq_length;
    train.finish(parallel);
  });
  options.rule([this](Problems& problems) { validate_together(problems); });
}

void PretrainConfig::finish() {
  model.finish();
  parallel.finish();
  tokenizer.finish();
  data.finish();
  data.read_words();
  train.tokens_of_a_sample = model.seq_length;
  train.finish(parallel);
  checkpoint.finish();
}

void PretrainConfig::validate(Problems& problems) const {
  model.validate(problems);
  parallel.validate(problems);
  train.validate(problems);
  data.validate(problems);
  tokenizer.validate(problems);
  checkpoint.validate(problems);
  validate_together(problems);
}

namespace {
/// A run that resumes may be past the first levels of a batch schedule; those that it takes are checked when
/// it begins.
void check_levels_from_the_start(const PretrainConfig& config, Problems& problems) {
  const int64_t step = int64_t{config.train.micro_batch} * config.parallel.data;
  if (!config.checkpoint.load.empty() || step == 0) return;
  for (const BatchLevel& level : config.train.batch_levels())
    if (level.batch % step != 0)
      problems.add(Opt{"step-batch-size-schedule"}, ": ", level.batch, " is not a multiple of ",
                   Opt{"micro-batch-size"}, ' ', config.train.micro_batch, " * data-parallel size ",
                   config.parallel.data, nearest_multiples(level.batch, step));
}

void check_validation_sets(const PretrainConfig& config, Problems& problems) {
  const TrainConfig& train = config.train;
  if (!train.full_validation) return;
  const DataConfig& data = config.data;
  if (data.mock || data.reads_texts())
    problems.add(Opt{"full-validation"}, " needs datasets of tokens; leave it out");
  if (train.multiple_validation && data.valid_path.empty())
    problems.add(Opt{"multiple-validation-sets"}, " needs ", Opt{"valid-data-path"}, " or ",
                 Opt{"per-split-data-args-path"});
}

/// Counted from zero, saves are due after the steps 1, N + 1, …, none of which is a multiple.
void check_retained_steps(const PretrainConfig& config, Problems& problems) {
  if (!config.checkpoint.retain_interval || !config.train.from_zero) return;
  problems.add(Opt{"save-retain-interval"}, ' ', *config.checkpoint.retain_interval, " and ",
               Opt{"count-steps-from-zero"}, ", which saves after other steps than its multiples; leave out ",
               "one of them, or give ", Opt{"keep-last"}, " N");
}
}  // namespace

void PretrainConfig::validate_together(Problems& problems) const {
  check_retained_steps(*this, problems);
  check_levels_from_the_start(*this, problems);
  check_validation_sets(*this, problems);
  parallel.validate(model, problems);
  train.validate(parallel, problems);
  check_interleaving(*this, problems);
  if (data.has_own_paths() && data.train_path.empty() && !train.eval_only)
    problems.add(Opt{"valid-data-path"}, " and ", Opt{"test-data-path"}, " need ", Opt{"train-data-path"},
                 ", or ", Opt{"eval-only"});
}

template std::vector<Field> fields_of<PretrainConfig>(PretrainConfig&);

}  // namespace megalith
