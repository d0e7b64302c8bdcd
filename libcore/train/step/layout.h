#pragma once

#include <optional>
#include <vector>

#include "libcore/config/checkpoint_config.h"
#include "libcore/config/pretrain_config.h"
#include "libcore/model/param_store.h"
#include "libcore/model/stage.h"
#include "libcore/parallel/topology.h"
#include "libcore/train/schedules/schedule.h"
#include "libcore/train/step/batch.h"
#include "libcore/train/step/executor.h"
#include "libcore/train/step/grad_buffer.h"
#include "libcore/train/step/nccl_buffers.h"

/// What follows from a run's configuration and a rank's position. The trainer builds a rank from it, and
/// run_memory() counts that rank's memory. Configurations must have passed finish().
namespace megalith {

/// The possible forms of a run's samples.
struct SampleForm {
  bool attention_starts = false, position_starts = false;  // documents are separated (see Microbatch)
  bool short_ones = false;                                 // micro-batches may be shorter than seq_length
  bool gaps = false;                                       // evaluations count what the model would choose
};

/// Model, partition and training settings of a run: what every rank is built from. train.device is the name
/// of the run's backend.
struct RunShape {
  ModelConfig model;
  ParallelConfig parallel;
  TrainConfig train;
  SaveCopy save_copy = SaveCopy::kNone;
  SampleForm samples = {};
  TuningPlan tuning = {};
  VocabularyForm vocabulary = {};         // gpu_vocabulary() if the run is on a GPU
  NcclSizes nccl = {};                    // nccl_sizes_here() if several ranks are on GPUs
  ExchangeCut gpu_cut = kGpuExchangeCut;  // of tensor-parallel products and exchanges, if the run is on GPUs
  size_t task_bytes = 0;                  // with which each rank reads the texts of --eval-tasks
};

/// The shape of a run that trains a whole model from scratch.
RunShape run_shape(const PretrainConfig&);

/// Whether the run's tensors are in the memory of a GPU. TrainConfig::device must be resolved, not "gpu".
bool on_gpu(const RunShape&);
/// The form of the vocabulary on a GPU that has this much memory in all. The logits get 1/128 of it, but at
/// least 128 MiB: 1.1 GiB on an H200. The more rows a product has, the less its start and end cost.
VocabularyForm gpu_vocabulary(size_t device_bytes);
RecomputePlan recompute_plan(const TrainConfig&);
DType model_dtype(const TrainConfig&);
DType first_moment_dtype(const TrainConfig&);
BatchShape batch_shape(const RunShape&, const Coord& at = {});
TensorSplit tensor_split(const RunShape&, const Coord&);
/// The number of this rank's copy of its parameters, from 0 to ParallelConfig::copies() - 1: its position in
/// the data group.
int copy_number(const RunShape&, const Coord&);
int pipeline_chunks(const RunShape&);

/// The layers of one of a rank's chunks.
Layers chunk_layers(const RunShape&, const Coord&, int chunk);
/// The stages of a rank's chunks, declared in one table, which must outlive them.
std::vector<Stage> make_stages(const RunShape&, const Coord&, ParamTable&);

/// How a rank's parameters are placed in memory. A tied table has its own bucket, because its gradient must
/// first be summed over the two ends of the pipeline.
StoreOptions store_options(const RunShape&);
/// The name of the parameter that is on both the first and the last pipeline stage; empty: none.
std::string tied_parameter(const RunShape&);

/// The order of a rank's work in training, and in evaluation. kUsage when the pipeline cannot be scheduled.
std::vector<Step> training_plan(const RunShape&, int pipeline, int microbatches);
std::vector<Step> evaluation_plan(const RunShape&);

}  // namespace megalith
