#pragma once

#include <string>
#include <utility>
#include <vector>

#include "libcore/plan/price/candidate.h"

namespace megalith {

enum class Launcher { kTorchrun, kSrun, kMpirun };
inline std::vector<std::pair<const char*, Launcher>> enum_names(Launcher) {
  return {{"torchrun", Launcher::kTorchrun}, {"srun", Launcher::kSrun}, {"mpirun", Launcher::kMpirun}};
}

/// The command line of our program (megalith-pretrain, or megalith-finetune for a tuning run) that trains
/// with this partition, all of whose ranks are on one machine.
std::string direct_line(const PlanProblem&, const Candidate&);
/// The command line of a launcher that trains with this partition: with our program if `ours`, otherwise with
/// Megatron-LM's pretrain_gpt.py. With torchrun, the line is the same on every machine.
std::string launch_line(const PlanProblem&, const Candidate&, Launcher, bool ours);

/// A job for a cluster's scheduler.
enum class JobKind { kNone, kSlurm, kKubernetes, kDlc };
inline std::vector<std::pair<const char*, JobKind>> enum_names(JobKind) {
  return {{"none", JobKind::kNone},
          {"slurm", JobKind::kSlurm},
          {"k8s", JobKind::kKubernetes},
          {"dlc", JobKind::kDlc}};
}
/// Stands in a job for each value that only the user knows: the image, the data, how long it may take.
inline constexpr char kFillIn[] = "FILL_IN";
/// The fields and options of a job that are to be filled in: {"--time", "--data-path"}.
std::vector<std::string> job_gaps(const std::string& job);

/// The text of a job: a batch script (slurm), a PyTorchJob as YAML (k8s), or a PyTorchJob as JSON for
/// Alibaba's PAI-DLC (dlc). For this machine's processor (trained_here) the job requests cores and memory
/// instead of GPUs.
std::string job_text(const PlanProblem&, const Candidate&, JobKind, bool ours);

}  // namespace megalith
