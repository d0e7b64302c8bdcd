#include "libcore/plan/launch/launch.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/base/shell_word.h"
#include "libcore/json/json.h"
#include "libcore/plan/launch/launch_options.h"
#include "libcore/plan/shape/model_options.h"

namespace megalith {
namespace {

/// The command lines that start training on all machines of a problem.
class Start {
 public:
  Start(const PlanProblem& problem, const Candidate& cut, bool ours) : p_(problem), c_(cut), ours_(ours) {}

  bool on_processors() const { return p_.trained_here; }
  int each() const { return p_.machine.local_world; }
  int machines() const { return (p_.machine.world + each() - 1) / each(); }
  const Accelerator& device() const { return p_.machine.device; }

  /// The command for one machine. `machines` and `place` are the number of machines and this machine's index:
  /// numbers or shell variables.
  std::string torchrun(const std::string& machines, const char* place) const {
    return concat(environment(), "torchrun --nnodes ", machines, " --nproc_per_node ", each(),
                  " --node_rank ", place, " --master_addr $MASTER_ADDR --master_port $MASTER_PORT ",
                  ours_ ? "--no-python " : "", program());
  }
  std::string srun() const {
    return concat("srun --nodes ", machines(), " --ntasks-per-node ", each(),
                  in_shell("RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS "));
  }
  std::string mpirun() const {
    return concat("mpirun -np ", p_.machine.world, " --map-by ppr:", each(), ":node",
                  in_shell("RANK=$OMPI_COMM_WORLD_RANK LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK "
                           "WORLD_SIZE=$OMPI_COMM_WORLD_SIZE "));
  }

  /// Asks Slurm for a signal before the job's time is over. Our program then saves; Megatron would end, so
  /// its jobs do not ask for it.
  const char* saving() const { return ours_ ? "\n#SBATCH --signal=USR1@300" : ""; }

  /// The memory, as a quantity for a container, of the ranks of a machine that share the planned processor.
  std::string memory() const {
    const auto gib = static_cast<int64_t>(device().memory * each() / (1 << 30));
    return concat(std::max(int64_t{1}, gib), "Gi");
  }

 private:
  /// X2: before Blackwell, collectives that run during matrix products need a single hardware queue, but
  /// those of FSDP need several.
  std::string environment() const {
    const bool blackwell = device().fp4_flops > 0, beside = c_.tensor > 1 || c_.context > 1;
    const bool needs_one = !blackwell && beside && c_.sharding < Sharding::kGradients && !on_processors();
    return needs_one ? "CUDA_DEVICE_MAX_CONNECTIONS=1 " : "";
  }
  std::string program() const {
    return concat(ours_ ? "megalith-pretrain " : "pretrain_gpt.py ", model_options(p_.model, ours_),
                  ours_ ? p_.run_words : p_.megatron_words, ' ', launch_options(p_, c_, ours_));
  }
  /// A shell command that passes the rank from the launcher's variables to the program.
  std::string in_shell(const char* ranks) const {
    return " bash -c " +
           single_quoted(concat(ranks, environment(), "exec ", ours_ ? "" : "python ", program()));
  }

  const PlanProblem& p_;
  const Candidate& c_;
  bool ours_;
};

std::string slurm(const Start& start) {
  const std::string devices = start.on_processors() ? "" : concat("\n#SBATCH --gpus-per-node=", start.each());
  return concat("#!/bin/bash\n#SBATCH --nodes=", start.machines(),
                "\n#SBATCH --ntasks-per-node=", start.each(), devices, start.saving(),
                "\n#SBATCH --exclusive\nset -euo pipefail\nexport MASTER_ADDR=$(scontrol show hostnames "
                "\"$SLURM_JOB_NODELIST\" | "
                "head -n 1) MASTER_PORT=29500\n",
                start.srun(), '\n');
}

/// The name of the devices as a Kubernetes resource, as the vendor's plugin defines it.
const char* device_resource(const std::string& device) {
  if (device.starts_with("MI")) return "amd.com/gpu";
  return device.starts_with("Ascend") || device.starts_with("910") ? "huawei.com/Ascend910"
                                                                   : "nvidia.com/gpu";
}

Json container(const Start& start) {
  const std::string line = start.torchrun(std::to_string(start.machines()), "$RANK");
  const Json::Object limits =
      start.on_processors() ? Json::Object{{"cpu", std::to_string(usable_cpus())}, {"memory", start.memory()}}
                            : Json::Object{{device_resource(start.device().name), start.each()}};
  return Json::Object{{"name", "pytorch"},
                      {"image", "IMAGE"},
                      {"command", Json::Array{"bash", "-c", line}},
                      {"resources", Json::Object{{"limits", limits}}}};
}

/// Kubernetes reads JSON as YAML, so one writer serves both.
std::string kubernetes(const Start& start) {
  const Json::Object pod = {{"spec", Json::Object{{"containers", Json::Array{container(start)}}}}};
  const auto replicas = [&](int count) {
    return Json::Object{{"replicas", count}, {"restartPolicy", "OnFailure"}, {"template", pod}};
  };
  Json::Object specs = {{"Master", replicas(1)}};
  if (start.machines() > 1) specs.emplace_back("Worker", replicas(start.machines() - 1));
  const Json job = Json::Object{{"apiVersion", "kubeflow.org/v1"},
                                {"kind", "PyTorchJob"},
                                {"metadata", Json::Object{{"name", "megalith-pretrain"}}},
                                {"spec", Json::Object{{"pytorchReplicaSpecs", specs}}}};
  return job.dump(2) + '\n';
}

std::string dlc(const Start& start) {
  const Json::Object resource =
      start.on_processors()
          ? Json::Object{{"CPU", std::to_string(usable_cpus())}, {"Memory", start.memory()}}
          : Json::Object{{"GPU", std::to_string(start.each())}, {"GPUType", start.device().name}};
  const Json::Object spec = {
      {"Type", "Worker"}, {"PodCount", start.machines()}, {"Image", "IMAGE"}, {"ResourceConfig", resource}};
  const Json job = Json::Object{{"DisplayName", "megalith-pretrain"},
                                {"JobType", "PyTorchJob"},
                                {"JobSpecs", Json::Array{spec}},
                                // DLC's WORLD_SIZE and RANK count machines.
                                {"UserCommand", start.torchrun("$WORLD_SIZE", "$RANK")}};
  return job.dump(2) + '\n';
}

}  // namespace

std::string launch_line(const PlanProblem& p, const Candidate& c, Launcher launcher, bool ours) {
  const Start start(p, c, ours);
  switch (launcher) {
    case Launcher::kTorchrun:
      return start.torchrun(std::to_string(start.machines()), "$NODE_RANK");
    case Launcher::kSrun:
      return start.srun();
    case Launcher::kMpirun:
      return start.mpirun();
  }
  return {};
}

std::string job_text(const PlanProblem& p, const Candidate& c, JobKind kind, bool ours) {
  const Start start(p, c, ours);
  switch (kind) {
    case JobKind::kNone:
      return {};
    case JobKind::kSlurm:
      return slurm(start);
    case JobKind::kKubernetes:
      return kubernetes(start);
    case JobKind::kDlc:
      return dlc(start);
  }
  return {};
}

}  // namespace megalith
