#include "libcore/train/step/layout.h"

#include <algorithm>

#include "libcore/model/embedding.h"
#include "libcore/parallel/stage_table.h"

namespace megalith {

RunShape run_shape(const PretrainConfig& config) {
  return {.model = config.model,
          .parallel = config.parallel,
          .train = config.train,
          .samples = {.attention_starts = config.data.reset_attention_mask,
                      .position_starts = config.data.reset_position_ids}};
}

bool on_gpu(const RunShape& run) {
  return run.train.device == "cuda";
}

VocabularyForm gpu_vocabulary(size_t device_bytes) {
  constexpr size_t kLogitsShare = 128;
  return {.padded = true,
          .logits_bytes =
              std::max(VocabularyForm::kLeastLogits, static_cast<int64_t>(device_bytes / kLogitsShare))};
}

RecomputePlan recompute_plan(const TrainConfig& train) {
  return {.granularity = train.recompute,
          .block = train.recompute_method == "block",
          .layers = train.recompute_layers.value_or(0)};
}

DType model_dtype(const TrainConfig& train) {
  return train.bf16 ? DType::kBf16 : train.fp16 ? DType::kF16 : DType::kF32;
}
DType first_moment_dtype(const TrainConfig& train) {
  return train.first_moments == MomentType::kBf16 ? DType::kBf16 : DType::kF32;
}

BatchShape batch_shape(const RunShape& run, const Coord& at) {
  return {.seq_length = run.model.seq_length,
          .micro_batch = run.train.micro_batch,
          .microbatches = run.train.global_batch / (run.train.micro_batch * run.parallel.data),
          .data_rank = at.data,
          .data_size = run.parallel.data,
          .context_rank = at.context,
          .context_size = run.parallel.context,
          .ramp = run.train.ramp(),
          .levels = run.train.batch_levels(),
          .length_step = (run.parallel.context > 1 ? int64_t{2} * run.parallel.context : 1) *
                         (run.parallel.sequence ? run.parallel.tensor : 1),
          .attention_starts = run.samples.attention_starts,
          .position_starts = run.samples.position_starts,
          .gaps = run.samples.gaps,
          .on_gpu = on_gpu(run)};
}

TensorSplit tensor_split(const RunShape& run, const Coord& at) {
  return {.rank = at.tensor,
          .size = run.parallel.tensor,
          .sequence = run.parallel.sequence,
          .vocabulary = run.vocabulary,
          .cut = on_gpu(run) ? run.gpu_cut : ExchangeCut{}};
}

int copy_number(const RunShape& run, const Coord& at) {
  return at.data * run.parallel.context + at.context;
}

int pipeline_chunks(const RunShape& run) {
  return StageTable(run.model.layers, run.parallel).chunks();
}

Layers chunk_layers(const RunShape& run, const Coord& at, int chunk) {
  const StageTable table(run.model.layers, run.parallel);
  const LayerRange range = table.range(at.pipeline, chunk);
  return {.first = range.first,
          .count = range.count,
          .embedding = at.pipeline == 0 && chunk == 0,
          .head = at.pipeline + 1 == run.parallel.pipeline && chunk + 1 == table.chunks()};
}

std::vector<Stage> make_stages(const RunShape& run, const Coord& at, ParamTable& params) {
  std::vector<Stage> stages;
  const int chunks = pipeline_chunks(run);
  stages.reserve(static_cast<size_t>(chunks));
  for (int chunk = 0; chunk < chunks; ++chunk)
    stages.emplace_back(run.model, chunk_layers(run, at, chunk), tensor_split(run, at), params,
                        recompute_plan(run.train));
  if (run.train.decay_all)
    for (Param& param : params.all()) param.decay = true;
  return stages;
}

StoreOptions store_options(const RunShape& run) {
  const bool windows = run.parallel.sharding == Sharding::kGradients;
  // By default the size of Megatron's buckets. If buckets share memory, a bucket holds one unit, which keeps
  // the two windows small.
  const int64_t bucket =
      windows ? 1 : std::max(int64_t{40'000'000}, int64_t{1'000'000} * run.parallel.copies());
  return {.dtype = model_dtype(run.train),
          .shards = run.parallel.sharded() ? run.parallel.copies() : 1,
          .bucket = run.parallel.bucket_size.value_or(bucket),
          .buckets = run.parallel.bucket_count.value_or(0),
          .alone = tied_parameter(run),
          .windows = windows};
}

std::string tied_parameter(const RunShape& run) {
  return run.model.untied_head ? std::string() : kWordEmbeddings;
}

std::vector<Step> training_plan(const RunShape& run, int pipeline, int microbatches) {
  return plan_pipeline(pipeline, run.parallel.pipeline, pipeline_chunks(run), microbatches,
                       run.parallel.pipeline);
}

std::vector<Step> evaluation_plan(const RunShape& run) {
  return plan_forward(run.parallel.pipeline, pipeline_chunks(run), batch_shape(run).microbatches);
}

}  // namespace megalith
