#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/config/pretrain_config.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/json/json.h"
#include "libcore/model/params.h"
#include "libcore/parallel/communicator.h"
#include "libcore/text/tokenizer.h"
#include "libcore/train/data/data_set.h"
#include "libcore/train/objective/preference.h"
#include "libcore/train/ranks/rank_device.h"

namespace megalith {

/// The member of a checkpoint's args.json that names a fine-tuning run: an object of texts. Two runs have the
/// same texts if they begin with the same model and adapter and train by the same method on the same data.
inline constexpr const char* kTuningRun = "tuning_run";

/// What the fine-tuning of a trained model needs in addition to PretrainConfig.
struct Tuning {
  TuningPlan plan = {};
  bool short_samples = false;            // the value of SampleForm::short_ones
  const TensorFile* base = nullptr;      // initial values of the model, under our parameter names
  const TensorFile* adapters = nullptr;  // initial values of the adapters; null: those that `plan` declares
  bool keep_best = false;  // save a checkpoint after each evaluation that is better than all earlier ones
  int64_t patience = 0;    // end the run after this many evaluations without improvement; 0: never
  double threshold = 0;    // an evaluation is better if its loss is lower by more than this
  /// The best evaluation is the one with the greatest accuracy of labels, not with the lowest loss.
  bool by_accuracy = false;
  /// Training with preferences (DPO): the model learns which of two answers is better. The reference is the
  /// base without adapters. `examples` holds every example that SampleSource::example of the run's data can
  /// name, as one sample each.
  struct Preferences {
    PreferenceOptions options;
    SampleSource examples;
    int64_t count;
  };
  std::optional<Preferences> preferences = {};
  Json::Object args = {};  // additional members of a checkpoint's args.json
  /// The paths of an earlier run's results. A run with --overwrite-output-dir removes them.
  std::vector<std::string> results = {};
};

struct PretrainResult {
  int64_t iteration = 0;   // steps done, including those of earlier runs
  std::string stopped_by;  // the signal that ended the run early; empty: none
  bool saved = false;      // --save holds a checkpoint of `iteration`
  int64_t best = 0;        // with Tuning: the iteration of the best evaluation; 0: there was none
};

/// What one rank of a run receives. Everything must outlive the call; several threads may read the data.
struct RankInput {
  const PretrainConfig& config;  // complete: finish() and validate() were called
  const DataSets& data;
  const Tokenizer* tokenizer;  // may be null unless a sample text is requested
  const StopSignal& stop;
  Communicator& world;
  int ranks_here = 0;              // ranks of `world` on this machine; 0: all of them
  const Tuning* tuning = nullptr;  // null: pretraining, not fine-tuning
  DevicePlace place = {};

  int ranks_on_machine() const { return ranks_here > 0 ? ranks_here : world.size(); }
};

/// Trains a model as configured, from scratch or from the latest checkpoint of --load: steps, evaluations,
/// samples, checkpoints, log lines in Megatron's wording, TensorBoard, JSON lines. Every rank of `world`
/// calls it, as a thread or as a process; rank 0 logs. In each step all ranks agree on the loss, on skipping
/// the step and on ending the run. The result is the same on all ranks. Throws kUsage when the machine's
/// memory is too small or the checkpoint does not fit the options, kData when loss or gradient remain
/// non-finite, and whatever its parts throw.
PretrainResult train_rank(const RankInput&);

/// The threads of one rank: --threads, or else OMP_NUM_THREADS, which OpenMP itself would obey, or else
/// `share`, the CPUs of this machine per rank.
int threads_of_a_rank(const PretrainConfig& config, int share);

/// Returns the sink for the log lines of a rank other than 0. Without a function, or with an empty sink,
/// these lines are dropped.
using ThreadLog = std::function<LogSink(int rank)>;

/// Runs `body` as each rank of a run whose ranks are threads of this process, or as its only rank in this
/// thread. Each rank uses an equal share of the machine's cores unless --threads or OMP_NUM_THREADS sets the
/// number of threads.
void run_ranks_here(const PretrainConfig&, const ThreadLog&,
                    const std::function<void(Communicator& world)>& body);

/// Runs all ranks in this process: one rank in this thread, or --nproc ranks as threads. Each rank uses an
/// equal share of the machine's cores unless --threads or OMP_NUM_THREADS sets the number of threads.
PretrainResult train(const PretrainConfig& config, const DataSets&, const Tokenizer* tokenizer,
                     const StopSignal& stop = StopSignal(), const ThreadLog& thread_log = {},
                     const Tuning* tuning = nullptr);

/// Sets last_wait_limit() to the ranks' timeout and the time that a rank needs to name one that is lost.
void limit_last_waits(const PretrainConfig&);

/// One rank of a run in which each rank is a process.
struct ProcessRank {
  Communicator& world;
  int ranks_here = 1;  // ranks of `world` on this machine
  int cpu_share = 1;   // CPUs of this machine per rank
  DevicePlace place = {};
};
/// Sets threads_of_a_rank() for this process and, if it computes on the CPU, keeps its threads on one NUMA
/// node where there are as many ranks as nodes. Warns if OMP_NUM_THREADS leaves cores of its share idle.
void take_cpu_share(const PretrainConfig&, const ProcessRank&);

/// Runs the rank of this process, with cpu_share threads unless --threads or OMP_NUM_THREADS sets the number.
PretrainResult train(const PretrainConfig& config, const DataSets&, const Tokenizer* tokenizer,
                     const StopSignal&, const ProcessRank&, const Tuning* tuning = nullptr);

}  // namespace megalith
