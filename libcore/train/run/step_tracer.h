#pragma once

#include "libcore/config/train_config.h"
#include "libcore/parallel/communicator.h"
#include "libcore/train/log/op_table.h"
#include "libcore/train/log/run_observer.h"
#include "libcore/train/step/trainer.h"

namespace megalith {

/// Traces the trainer in the steps that --trace asks for, and writes the trace at the end of the run. On the
/// CPU it then measures what the machine reaches, logs how near each op of the first rank came to it, and
/// writes that of all ranks to the file.
class StepTracer final : public RunObserver {
 public:
  /// The arguments must outlive this object.
  StepTracer(const ObservedRun&, Trainer&);

  void before_step(int64_t iteration) override;
  void end(const EndReport&) override;

 private:
  /// The ops of this rank's traced steps; nothing on a GPU.
  OpTable ops();

  const TrainConfig& train_;
  Communicator& world_;
  Trainer& trainer_;
  int64_t start_, steps_ = 0;  // steps that were traced
};

}  // namespace megalith
