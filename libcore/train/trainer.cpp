#include "libcore/train/trainer.h"

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
      batch_arena_(make_arena(backend, "batch", bill_.batch)),
      scalar_arena_(make_arena(backend, "step scalars", 256)),
      scalars_(scalar_arena_.make(DType::kF64, {StepScalar::kCount}, "step scalars")) {
  if (parallel.world != 1) fail(ErrorKind::kInternal, "trainer: made for one rank, not ", parallel.world);
  stages_.emplace_back(model, Layers{.first = 0, .count = model.layers}, TensorSplit{}, params_,
                       recompute_plan(train));
  store_ = std::make_unique<ParamStore>(params_, stream_, StoreOptions{.dtype = model_dtype(train)});
  initialize(params_, stream_, static_cast<uint64_t>(train.seed));
  grads_ = std::make_unique<GradBuffer>(*store_, *self_);
  optimizer_ = std::make_unique<Optimizer>(params_, *store_, stream_,
                                           AdamSettings{.beta1 = train.beta1,
                                                        .beta2 = train.beta2,
                                                        .eps = train.adam_eps,
                                                        .weight_decay = train.weight_decay});
  executor_ = std::make_unique<Executor>(stages_, PipelinePlace{}, bill_.executor, backend);
  batch_ = std::make_unique<Batch>(batch_arena_, megalith::batch_shape(model, parallel, train));
  training_plan_ = plan_pipeline(0, 1, 1, batch_->shape().microbatches, 1);
  evaluation_plan_ = plan_forward(1, batch_->shape().microbatches);
}

Ctx Trainer::context(bool training) {
  return {.compute = stream_,
          .tp = region_,
          .scratch = scratch_,
          .key = {.seed = static_cast<uint32_t>(train_.seed)},
          .training = training};
}

void Trainer::start_scalars(double learning_rate) {
  std::array<double, StepScalar::kCount> scalars{};
  scalars[StepScalar::kLossScale] = 1;
  scalars[StepScalar::kLearningRate] = learning_rate;
  optimizer_->give_corrections(scalars.data());
  stream_.from_host(scalars_, scalars.data());
}

std::array<double, StepScalar::kCount> Trainer::read_scalars() {
  std::array<double, StepScalar::kCount> scalars;
  stream_.to_host(scalars.data(), scalars_);
  stream_.synchronize();
  return scalars;
}

Trainer::StepResult Trainer::step(const SampleReader& read, int64_t consumed, double learning_rate) {
  batch_->load(stream_, read, consumed);
  grads_->zero(stream_);
  start_scalars(learning_rate);
  executor_->run(context(true), training_plan_, batch_->microbatches(),
                 step_scalar(scalars_, StepScalar::kLoss));
  grads_->reduce(stream_);
  grads_->add_squares(stream_, step_scalar(scalars_, StepScalar::kSumSquares));
  run(stream_, DecideStep{.scalars = scalars_, .max_norm = train_.clip_grad});
  optimizer_->step(stream_, scalars_);
  const auto scalars = read_scalars();
  const bool skipped = scalars[StepScalar::kSkip] != 0;
  if (!skipped) optimizer_->set_steps(optimizer_->steps() + 1);
  return {.loss = scalars[StepScalar::kLoss], .grad_norm = scalars[StepScalar::kNorm], .skipped = skipped};
}

double Trainer::evaluate(const SampleReader& read, int64_t consumed) {
  evaluated_ = true;
  batch_->load(stream_, read, consumed);
  const View loss = step_scalar(scalars_, StepScalar::kLoss);
  stream_.fill(loss, 0);
  executor_->run(context(false), evaluation_plan_, batch_->microbatches(), loss);
  return read_scalars()[StepScalar::kLoss];
}

void Trainer::check_memory() const {
  const size_t scratch = evaluated_ ? bill_.scratch : bill_.training_scratch;
  if (executor_->tape_peak() != bill_.executor.tape || scratch_.peak() != scratch)
    fail(ErrorKind::kInternal, "memory: the plan said ", bill_.executor.tape, " bytes of activations and ",
         scratch, " of scratch, the run took ", executor_->tape_peak(), " and ", scratch_.peak());
}

}  // namespace megalith
