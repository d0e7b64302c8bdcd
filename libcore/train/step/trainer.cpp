#include "libcore/train/step/trainer.h"

#include <array>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/ops/step.h"
#include "libcore/parallel/exchange.h"

namespace megalith {

namespace {

/// The stream of a rank's passes. With --trace it records ops, but only on the CPU, where an op is done when
/// the call returns: on a GPU passes are repeated as graphs.
Stream compute_stream(const RunShape& run, Backend& backend, Trace& ops) {
  const bool traced = !run.train.trace.empty() && std::string_view(backend.name()) == "cpu";
  return traced ? Stream(backend, nullptr, &ops) : backend.make_stream();
}

}  // namespace

Trainer::Trainer(const RunShape& run, Backend& backend, Communicator& world)
    : run_(run),
      loss_scale_(run.train),
      stream_(compute_stream(run, backend, ops_)),
      results_(stream_),
      memory_(run_memory(run, Topology(run.parallel, world.size()).coord(world.rank()))),
      links_(make_arena(backend, "pipeline links", memory_.links)),
      groups_(Topology(run.parallel, world.size()), world),
      region_(make_region(backend)),
      context_(*groups_.context, *groups_.context_reversed),
      params_(run.tuning),
      stages_(make_stages(run, groups_.at, params_)),
      scratch_(make_arena(backend, "scratch", memory_.scratch)),
      batch_arena_(make_arena(backend, "batch", Batch::bytes(batch_shape(run)))),
      scalar_arena_(make_arena(backend, "scalars", memory_.scalars)),
      evaluation_plan_(evaluation_plan(run)),
      max_norm_(run.train.clip_grad) {
  stream_.set_spans(&spans_);
  const Sharding sharding = run.parallel.sharding;
  const TrainConfig& train = run.train;
  store_ = std::make_unique<ParamStore>(params_, stream_, store_options(run));
  shards_ = std::make_unique<Shards>(*store_, sharding, groups_.data->rank(), groups_.data->size());
  grads_ = std::make_unique<GradBuffer>(params_, *store_, groups_, *shards_, sharding, backend);
  gather_ = std::make_unique<ParamGather>(params_, *store_, *shards_, *groups_.data,
                                          on_gpu(run) ? grads_->queue() : stream_);
  optimizer_ = std::make_unique<Optimizer>(params_, *store_, *shards_, stream_,
                                           AdamSettings{.beta1 = train.beta1,
                                                        .beta2 = train.beta2,
                                                        .eps = train.adam_eps,
                                                        .weight_decay = train.weight_decay,
                                                        .first_moments = first_moment_dtype(train)});
  executor_ = std::make_unique<Executor>(stages_, pipeline_links(), memory_.executor, links_, backend);
  batch_ = std::make_unique<Batch>(batch_arena_, batch_shape(run, groups_.at), &backend);
  repeated_ = std::make_unique<RepeatedPasses>(*batch_, backend, run, groups_);
  executor_->set_repeater(repeated_.get());
  scalars_ = scalar_arena_.make(DType::kF64, {StepScalar::kCount}, "scalars of a step");
}

/// On GPUs tensor-parallel ranks exchange rows on a stream of their own, beside products.
Region Trainer::make_region(Backend& backend) {
  const ExchangeCut cut = tensor_split(run_, groups_.at).cut;
  if (cut.most == 1 || groups_.tensor->size() == 1) return Region(*groups_.tensor, run_.parallel.sequence);
  beside_ = backend.make_stream();
  beside_->set_spans(&exchange_spans_);
  return Region(*groups_.tensor, run_.parallel.sequence, cut, *beside_);
}

void Trainer::initialize() {
  megalith::initialize(params_, stream_, static_cast<uint64_t>(run_.train.seed), run_.tuning.frozen);
  optimizer_->take_values(stream_);
}

PipelineLinks Trainer::pipeline_links() const {
  return {.rank = groups_.at.pipeline,
          .ranks = run_.parallel.pipeline,
          .forward = groups_.forward.get(),
          .backward = groups_.backward.get()};
}

// Not before the state is made: its values pass through blocks that are freed before the first pass.
void Trainer::reserve_scratch() {
  Backend& backend = stream_.backend();
  backend.reserve_scratch(stream_, memory_.streams.compute);
  backend.reserve_scratch(grads_->queue(), memory_.streams.buckets);
  if (beside_) backend.reserve_scratch(*beside_, memory_.streams.pieces);
}

Ctx Trainer::layer_context(bool training) {
  reserve_scratch();
  return {.compute = stream_,
          .tp = region_,
          .scratch = scratch_,
          .key = {.seed = static_cast<uint32_t>(run_.train.seed)},
          .loss_scale = static_cast<float>(loss_scale_.value()),
          .training = training,
          .params = gather_.get(),
          .cp = context_};
}

// If the step before is not known to have updated anything, the device chooses between both cases.
void Trainer::begin_scalars(const StepRate& rate) {
  StepResults::Scalars host{};
  const int64_t done = optimizer_->steps();
  const Optimizer::Corrections known = optimizer_->corrections(done + 1),
                               next = results_.waiting() == 0 ? known : optimizer_->corrections(done + 2);
  host[StepScalar::kLossScale] = loss_scale_.value();
  host[StepScalar::kLearningRate] = rate.value;
  host[StepScalar::kBiasCorrection1] = next.first;
  host[StepScalar::kBiasCorrection2] = next.second;
  host[StepScalar::kOtherLearningRate] = rate.if_skipped;
  host[StepScalar::kOtherBiasCorrection1] = known.first;
  host[StepScalar::kOtherBiasCorrection2] = known.second;
  stream_.from_host(scalars_.rows(0, StepScalar::kGiven), host.data());
}

// All tensor-parallel ranks of the last stage have the same loss, so only one of them counts.
void Trainer::sum_scalars() {
  if (groups_.at.tensor > 0) stream_.fill(scalar(StepScalar::kLoss), 0);
  groups_.world.all_reduce(stream_, scalars_.rows(0, StepScalar::kSummed), Reduce::kSum);
}

// The plan of the current step. It is rebuilt only when the number of microbatches has changed (BatchRamp).
const std::vector<Step>& Trainer::plan_of_step() {
  const auto microbatches = static_cast<int>(batch_->microbatches().size());
  if (std::exchange(planned_, microbatches) != microbatches)
    training_plan_ = training_plan(run_, groups_.at.pipeline, microbatches);
  return training_plan_;
}

void Trainer::make_gradients(const SampleSource& source, int64_t consumed, const StepRate& rate) {
  {
    const StreamSpan span(stream_, "batch");
    batch_->load(stream_, source, consumed);
    begin_scalars(rate);
    grads_->zero(stream_);
  }
  const double judged = judge_ ? judge_batch(source, consumed) : 0;
  executor_->run(layer_context(true), plan_of_step(), batch_->microbatches(), scalar(StepScalar::kLoss),
                 grads_.get());
  batch_->release(stream_);
  if (judge_) stream_.fill(scalar(StepScalar::kLoss), groups_.world.rank() == 0 ? judged : 0);
  const StreamSpan span(stream_, "wait for buckets");
  grads_->finish(stream_);
}

void Trainer::update() {
  {
    const StreamSpan span(stream_, "agree on the step");
    grads_->add_squares(stream_, scalar(StepScalar::kSumSquares));
    sum_scalars();
    run(stream_, DecideStep{.scalars = scalars_, .max_norm = max_norm_});
  }
  {
    const StreamSpan span(stream_, "optimizer");
    stream_.wait(std::exchange(state_read_, {}));
    gather_->finish(stream_);
    optimizer_->step(stream_, *grads_, scalars_);
  }
  gather_->begin(stream_);
}

bool Trainer::can_run_ahead() const {
  return results_.late() && !loss_scale_.dynamic() && !judge_;
}

Trainer::StepResult Trainer::step(const SampleSource& source, int64_t consumed, double learning_rate,
                                  const std::function<bool()>& stop) {
  begin_step(source, consumed, {.value = learning_rate, .if_skipped = learning_rate}, stop);
  return finish_step();
}

void Trainer::begin_step(const SampleSource& source, int64_t consumed, const StepRate& rate,
                         const std::function<bool()>& stop) {
  const StreamSpan span(stream_, "step");
  if (results_.waiting() > 0 && !can_run_ahead())
    fail(ErrorKind::kInternal, "a step began before the loss scale of the one before it was known");
  make_gradients(source, consumed, rate);
  if (stop && stop()) stream_.fill(scalar(StepScalar::kStop), 1);
  if (keeps_own_loss_) stream_.copy(scalar(StepScalar::kOwnLoss), scalar(StepScalar::kLoss));
  update();
  results_.put(scalars_);
  read_on();
}

// The device may still read the samples of a step that is waiting, and they are in the memory of the step
// after the one that is read now.
void Trainer::read_on() {
  if (results_.waiting() <= 1) batch_->read_on();
}

Trainer::StepResult Trainer::finish_step() {
  // The one time in a step that the host waits for a device.
  const StepResults::Scalars host = results_.take();
  read_on();
  own_loss_ = host[StepScalar::kOwnLoss] * run_.parallel.data;
  const bool skipped = host[StepScalar::kSkip] != 0;
  if (!skipped) optimizer_->set_steps(optimizer_->steps() + 1);
  loss_scale_.update(skipped);
  return {.loss = host[StepScalar::kLoss],
          .grad_norm = host[StepScalar::kNorm],
          .skipped = skipped,
          .stop = host[StepScalar::kStop] != 0,
          .loss_scale = loss_scale_.value()};
}

ParamTable& Trainer::params() {
  gather_->finish(stream_);
  return params_;
}

const ParamStore& Trainer::store() {
  gather_->finish(stream_);
  return *store_;
}

const Stage& Trainer::stage() {
  gather_->finish(stream_);
  return stages_.front();
}

namespace {

/// The sum of all ranks' vectors, in rank order. On the host, where `mine` is: tensor calls of a communicator
/// take memory of the device.
std::vector<double> sum_of_ranks(Communicator& world, const std::vector<double>& mine) {
  std::vector<double> sum(mine.size(), 0.0);
  for (const std::vector<double>& one : exchange_values(world, mine))
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  return sum;
}

}  // namespace

// The losses of the current batch's samples. Ranks that share a sample each compute the loss of their own
// rows, which are summed. Tensor-parallel ranks all compute the same losses, so only the first one's are
// added.
std::vector<double> Trainer::losses_of_batch() {
  const StreamSpan span(stream_, "losses of samples");
  evaluated_ = true;
  std::vector<double> sums(static_cast<size_t>(batch_->shape().samples()), 0.0);
  executor_->listen([&](int microbatch, ConstView losses) {
    std::vector<float> host(static_cast<size_t>(losses.elements()));
    stream_.to_host(host.data(), losses);
    const auto columns = static_cast<size_t>(losses.shape.back());
    if (groups_.at.tensor == 0)
      for (size_t i = 0; i < host.size(); ++i)
        sums[static_cast<size_t>(batch_->place(microbatch, static_cast<int64_t>(i % columns)))] +=
            static_cast<double>(host[i]);
  });
  executor_->run(layer_context(false), evaluation_plan_, batch_->microbatches(), scalar(StepScalar::kLoss));
  executor_->listen({});
  stream_.synchronize();
  return sum_of_ranks(groups_.world, sums);
}

void Trainer::set_judge(Judge judge) {
  judge_ = std::move(judge);
  executor_->set_repeater(nullptr);
}

std::string Trainer::repeated_passes() const {
  return judge_ ? "not used: the weights of a step's samples follow from their losses"
                : repeatable_passes(run_).text;
}

double Trainer::judge_batch(const SampleSource& source, int64_t consumed) {
  const Judgement judged = judge_(source, consumed, losses_of_batch());
  batch_->weigh(stream_, judged.weights);
  return judged.loss;
}

std::vector<double> Trainer::sample_losses(const SampleSource& source, int64_t consumed) {
  batch_->load_now(stream_, source, consumed);
  return losses_of_batch();
}

// Each rank with the last stage counts its own rows; of the tensor-parallel ranks, which have the same ones,
// the first.
void Trainer::count_labels(LabelCounts& counts) {
  std::vector<double> mine(2, 0.0);
  const bool counts_here = groups_.at.tensor == 0 && groups_.at.pipeline == run_.parallel.pipeline - 1;
  for (const Microbatch& microbatch : batch_->microbatches()) {
    if (!counts_here) break;
    std::vector<float> gaps(static_cast<size_t>(microbatch.gaps.elements())), mask(gaps.size(), 1.0f);
    stream_.to_host(gaps.data(), microbatch.gaps);
    if (microbatch.loss_mask) stream_.to_host(mask.data(), microbatch.loss_mask);
    stream_.synchronize();
    for (size_t i = 0; i < gaps.size(); ++i) {
      if (mask[i] == 0) continue;
      mine[0] += 1;
      mine[1] += gaps[i] == 0 ? 1 : 0;
    }
  }
  const std::vector<double> sums = sum_of_ranks(groups_.world, mine);
  counts.counted += sums[0];
  counts.chosen += sums[1];
}

double Trainer::evaluate(const SampleSource& source, int64_t consumed, LabelCounts* counts) {
  if (judge_) return judge_(source, consumed, sample_losses(source, consumed)).loss;
  const StreamSpan span(stream_, "evaluation");
  evaluated_ = true;
  batch_->load_now(stream_, source, consumed);
  begin_scalars({});
  executor_->run(layer_context(false), evaluation_plan_, batch_->microbatches(), scalar(StepScalar::kLoss));
  sum_scalars();
  double loss = 0;
  stream_.to_host(&loss, scalar(StepScalar::kLoss));
  if (counts) count_labels(*counts);
  return loss;
}

void Trainer::set_traced(bool traced) {
  if (traced && !spans_.on()) ops_.clear();
  if (!traced && spans_.on()) traced_ops_ = ops_.entries();
  spans_.set_on(traced);
  exchange_spans_.set_on(traced);
  grads_->spans().set_on(traced);
}

const std::map<std::string, Trace::Entry>& Trainer::traced_ops() {
  if (spans_.on()) traced_ops_ = ops_.entries();
  return traced_ops_;
}

std::vector<TraceLane> Trainer::take_trace() {
  std::vector<TraceLane> lanes{{"compute", spans_.take()}, {"gradient buckets", grads_->spans().take()}};
  if (std::vector<SpanLog::Span> spans = exchange_spans_.take(); !spans.empty())
    lanes.push_back({"tensor exchange", std::move(spans)});
  return lanes;
}

void Trainer::check_memory() const {
  const auto check = [&](const char* what, size_t planned, size_t used) {
    const bool less = run_.samples.short_ones && used < planned;
    if (planned != used && !less)
      fail(ErrorKind::kInternal, "memory of rank ", groups_.world.rank(), ": the plan said ", planned,
           " bytes of ", what, ", the run took ", used);
  };
  check("weights", memory_.weights, store_->value_bytes());
  check("gradients", memory_.grads, store_->grad_bytes() + grads_->used());
  check("optimizer state", memory_.optimizer, optimizer_->bytes());
  check("activations", memory_.executor.tape, executor_->tape_peak());
  check("pipeline links", memory_.links, links_.peak());
  check("scratch", evaluated_ ? memory_.scratch : memory_.training_scratch, scratch_.peak());
  check("the batch", memory_.batch, batch_arena_.peak());
  check("scalars", memory_.scalars, scalar_arena_.peak());
}

}  // namespace megalith
