#include "libcore/config/pretrain_config.h"

namespace megalith {

void PretrainConfig::add_to(Options& options) {
  options.add("Model", model).add("Parallelism", parallel).add("Training", train);
  options.add("Data", data).add("Tokenizer", tokenizer).add("Checkpoints", checkpoint);
  options.derive([this] { train.finish(parallel); });
  options.rule([this](Problems& problems) {
    parallel.validate(model, problems);
    train.validate(parallel, problems);
  });
  options.ignore(ignored_megatron_options()).refuse(refused_megatron_options());
}

void PretrainConfig::finish() {
  model.finish();
  parallel.finish();
  tokenizer.finish();
  train.finish(parallel);
}

void PretrainConfig::validate(Problems& problems) const {
  model.validate(problems);
  parallel.validate(problems);
  train.validate(problems);
  data.validate(problems);
  tokenizer.validate(problems);
  checkpoint.validate(problems);
  parallel.validate(model, problems);
  train.validate(parallel, problems);
}

}  // namespace megalith
