#include "libcore/train/trainer.h"

#include <cmath>

#include "libcore/base/error.h"
#include "libcore/ops/backend.h"

namespace megalith {

Trainer::Trainer(const ModelConfig& model, const ParallelConfig& parallel, const TrainConfig& train,
                 Backend& backend)
    : train_(train),
      stream_(backend.make_stream()),
      bill_(run_memory(model, parallel, train)),
      self_(make_self_comm()),
      region_(*self_),
      scratch_(make_arena(backend, "scratch", bill_.scratch)),
      batch_arena_(make_arena(backend, "batch", bill_.batch)) {
  if (parallel.world != 1) fail(ErrorKind::kInternal, "trainer: made for one rank, not ", parallel.world);
  stages_.emplace_back(model, Layers{.first = 0, .count = model.layers}, TensorSplit{}, params_,
                       recompute_plan(train));
  store_ = std::make_unique<ParamStore>(params_, stream_, StoreOptions{.dtype = model_dtype(train)});
  initialize(params_, stream_, static_cast<uint64_t>(train.seed));
  grads_ = std::make_unique<GradBuffer>(*store_, *self_, stream_);
  optimizer_ = std::make_unique<Optimizer>(params_, *store_, stream_,
                                           AdamSettings{.beta1 = train.beta1,
                                                        .beta2 = train.beta2,
                                                        .eps = train.adam_eps,
                                                        .weight_decay = train.weight_decay});
  executor_ = std::make_unique<Executor>(stages_, PipelinePlace{}, bill_.executor, backend);
  batch_ = std::make_unique<Batch>(batch_arena_, megalith::batch_shape(model, parallel, train));
  training_plan_ = plan_pipeline(0, 1, 1, batch_->shape().microbatches, 1);
  evaluation_plan_ = plan_forward(1, 1, batch_->shape().microbatches);
}

Ctx Trainer::context(bool training) {
  return {.compute = stream_,
          .tp = region_,
          .scratch = scratch_,
          .key = {.seed = static_cast<uint32_t>(train_.seed)},
          .training = training};
}

Trainer::StepResult Trainer::step(const SampleReader& read, int64_t consumed, double learning_rate) {
  batch_->load(stream_, read, consumed);
  grads_->zero(stream_);
  StepResult result;
  result.loss = executor_->run(context(true), training_plan_, batch_->microbatches());
  grads_->reduce(stream_);
  result.grad_norm = grads_->norm(stream_);
  result.skipped = !std::isfinite(result.loss) || !std::isfinite(result.grad_norm);
  if (!result.skipped)
    optimizer_->step(stream_, learning_rate,
                     static_cast<float>(clip_factor(result.grad_norm, train_.clip_grad)));
  return result;
}

double Trainer::evaluate(const SampleReader& read, int64_t consumed) {
  evaluated_ = true;
  batch_->load_now(stream_, read, consumed);
  return executor_->run(context(false), evaluation_plan_, batch_->microbatches());
}

void Trainer::check_memory() const {
  const size_t scratch = evaluated_ ? bill_.scratch : bill_.training_scratch;
  if (executor_->tape_peak() != bill_.executor.tape || scratch_.peak() != scratch)
    fail(ErrorKind::kInternal, "memory: the plan said ", bill_.executor.tape, " bytes of activations and ",
         scratch, " of scratch, the run took ", executor_->tape_peak(), " and ", scratch_.peak());
}

}  // namespace megalith
