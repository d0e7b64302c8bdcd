#include "libcore/plan/launch/launch.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/shell_word.h"
#include "libcore/json/json.h"
#include "libcore/plan/launch/launch_options.h"
#include "libcore/plan/shape/model_options.h"

namespace megalith {
namespace {

/// Whether the options give one of these.
bool gives_one(const std::string& words, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) {
    return concat(words, ' ').find(concat(" --", name, ' ')) != std::string::npos;
  });
}

/// Options that a run needs and the command did not give: its data, its length, and, of Megatron-LM, its
/// tokenizer and learning rate.
std::string missing_options(const std::string& words, bool ours) {
  const auto gives = [&](std::initializer_list<const char*> names) { return gives_one(words, names); };
  std::string out;
  const auto need = [&](const char* option) { out += concat(" --", option, ' ', kFillIn); };
  if (!gives({"data-path", "train-data-path", "mock-data"})) need("data-path");
  if (!gives({"train-iters", "train-samples", "num-epochs"})) need("train-iters");
  if (ours) return out;
  if (!gives({"tokenizer-type"})) need("tokenizer-type");
  const bool reads_no_file = words.find(" --tokenizer-type NullTokenizer") != std::string::npos;
  if (!reads_no_file && !gives({"tokenizer-model", "vocab-file"})) need("tokenizer-model");
  if (!gives({"lr"})) need("lr");
  return out;
}

/// The model, the data and the method of a tuning run; what is not known is to be filled in.
std::string tuning_options(const PlanProblem& p) {
  const PlannedTuning& t = p.tuning;
  return concat("--model ", t.model.empty() ? std::string(kFillIn) : shell_word(t.model), " --data ", kFillIn,
                gives_one(p.run_words, {"save"}) ? "" : concat(" --output-dir ", kFillIn), " --max-length ",
                p.model.seq_length, t.adapts() ? concat(" --lora --lora-rank ", t.lora_rank) : "",
                t.eight_bits ? " --qlora" : "");
}

/// The command lines that start training on all machines of a problem. `whole`: with what the command leaves
/// open, to be filled in.
class Start {
 public:
  Start(const PlanProblem& problem, const Candidate& cut, bool ours, bool whole)
      : p_(problem), c_(cut), ours_(ours), whole_(whole) {}

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

  std::string direct() const { return program(each() > 1 ? concat("--nproc ", each(), ' ') : ""); }

  const char* job_name() const { return p_.tuning.finetunes ? "megalith-finetune" : "megalith-pretrain"; }

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
  std::string program(const std::string& ranks = {}) const {
    if (p_.tuning.finetunes)
      return concat("megalith-finetune ", ranks, device_option(), tuning_options(p_), p_.run_words, ' ',
                    launch_options(p_, c_, true));
    const std::string& words = ours_ ? p_.run_words : p_.megatron_words;
    return concat(ours_ ? "megalith-pretrain " : "pretrain_gpt.py ", ranks, ours_ ? device_option() : "",
                  model_options(p_.model, ours_), words,
                  whole_ ? missing_options(words, ours_) : std::string(), ' ', launch_options(p_, c_, ours_));
  }
  /// Without an option our program trains on the processor.
  const char* device_option() const {
    return on_processors() || gives_one(p_.run_words, {"device"}) ? "" : "--device cuda ";
  }
  /// A shell command that passes the rank from the launcher's variables to the program.
  std::string in_shell(const char* ranks) const {
    return " bash -c " +
           single_quoted(concat(ranks, environment(), "exec ", ours_ ? "" : "python ", program()));
  }

  const PlanProblem& p_;
  const Candidate& c_;
  bool ours_, whole_;
};

std::string slurm(const Start& start) {
  const std::string devices = start.on_processors() ? "" : concat("\n#SBATCH --gpus-per-node=", start.each());
  return concat(
      "#!/bin/bash\n#SBATCH --nodes=", start.machines(), "\n#SBATCH --ntasks-per-node=", start.each(),
      devices, start.saving(), "\n#SBATCH --exclusive\n#SBATCH --job-name=", start.job_name(),
      "\n#SBATCH --time=", kFillIn,
      "\n#SBATCH --output=%x-%j.log\nset -euo pipefail\nexport MASTER_ADDR=$(scontrol show hostnames "
      "\"$SLURM_JOB_NODELIST\" | "
      "head -n 1) MASTER_PORT=29500\n",
      start.srun(), '\n');
}

constexpr std::string_view kNvidia = "nvidia.com/gpu";

/// The name of the devices as a Kubernetes resource, as the vendor's plugin defines it.
std::string_view device_resource(const std::string& device) {
  if (device.starts_with("MI")) return "amd.com/gpu";
  return device.starts_with("Ascend") || device.starts_with("910") ? "huawei.com/Ascend910" : kNvidia;
}

Json container(const Start& start) {
  const std::string line = start.torchrun(std::to_string(start.machines()), "$RANK");
  const Json::Object limits =
      start.on_processors() ? Json::Object{{"cpu", std::to_string(usable_cpus())}, {"memory", start.memory()}}
                            : Json::Object{{std::string(device_resource(start.device().name)), start.each()}};
  return Json::Object{
      {"name", "pytorch"},
      {"image", kFillIn},
      {"command", Json::Array{"bash", "-c", line}},
      {"resources", Json::Object{{"limits", limits}}},
      {"volumeMounts", Json::Array{Json::Object{{"name", "data"}, {"mountPath", "/data"}},
                                   Json::Object{{"name", "shared"}, {"mountPath", "/dev/shm"}}}}};
}

/// Kubernetes reads JSON as YAML, so one writer serves both.
std::string kubernetes(const Start& start) {
  // The ranks of a machine exchange through shared memory, of which a container has 64 MiB otherwise.
  const Json::Array volumes = {
      Json::Object{{"name", "data"}, {"persistentVolumeClaim", Json::Object{{"claimName", kFillIn}}}},
      Json::Object{{"name", "shared"}, {"emptyDir", Json::Object{{"medium", "Memory"}}}}};
  Json::Object spec = {{"containers", Json::Array{container(start)}}, {"volumes", volumes}};
  if (!start.on_processors() && device_resource(start.device().name) == kNvidia)
    spec.emplace_back("nodeSelector", Json::Object{{"nvidia.com/gpu.product", kFillIn}});
  const Json::Object pod = {{"spec", spec}};
  const auto replicas = [&](int count) {
    return Json::Object{{"replicas", count}, {"restartPolicy", "OnFailure"}, {"template", pod}};
  };
  Json::Object specs = {{"Master", replicas(1)}};
  if (start.machines() > 1) specs.emplace_back("Worker", replicas(start.machines() - 1));
  const Json job = Json::Object{{"apiVersion", "kubeflow.org/v1"},
                                {"kind", "PyTorchJob"},
                                {"metadata", Json::Object{{"name", start.job_name()}}},
                                {"spec", Json::Object{{"pytorchReplicaSpecs", specs}}}};
  return job.dump(2) + '\n';
}

std::string dlc(const Start& start) {
  const Json::Object resource =
      start.on_processors() ? Json::Object{{"CPU", std::to_string(usable_cpus())}, {"Memory", start.memory()}}
                            : Json::Object{{"GPU", std::to_string(start.each())},
                                           {"GPUType", kFillIn},  // the cluster's name of a device
                                           {"SharedMemory", kFillIn}};
  const Json::Object spec = {
      {"Type", "Worker"}, {"PodCount", start.machines()}, {"Image", kFillIn}, {"ResourceConfig", resource}};
  const Json job = Json::Object{
      {"DisplayName", start.job_name()},
      {"JobType", "PyTorchJob"},
      {"JobSpecs", Json::Array{spec}},
      {"DataSources", Json::Array{Json::Object{{"DataSourceId", kFillIn}, {"MountPath", "/data"}}}},
      // DLC's WORLD_SIZE and RANK count machines.
      {"UserCommand", start.torchrun("$WORLD_SIZE", "$RANK")}};
  return job.dump(2) + '\n';
}

}  // namespace

std::string direct_line(const PlanProblem& p, const Candidate& c) {
  return Start(p, c, true, false).direct();
}

std::string launch_line(const PlanProblem& p, const Candidate& c, Launcher launcher, bool ours) {
  const Start start(p, c, ours, false);
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

std::vector<std::string> job_gaps(const std::string& job) {
  const auto in_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("-_./").find(c) != std::string::npos;
  };
  std::vector<std::string> out;
  for (size_t at = job.find(kFillIn); at != std::string::npos; at = job.find(kFillIn, at + 1)) {
    size_t end = at;
    while (end > 0 && !in_name(job[end - 1])) --end;
    size_t begin = end;
    while (begin > 0 && in_name(job[begin - 1])) --begin;
    const std::string name = job.substr(begin, end - begin);
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  return out;
}

std::string job_text(const PlanProblem& p, const Candidate& c, JobKind kind, bool ours) {
  const Start start(p, c, ours, true);
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
