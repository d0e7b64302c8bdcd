#include "libcore/plan/launch/launch.h"

#include <algorithm>
#include <sstream>

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/json/json.h"

namespace megalith {
namespace {

int machines(const PlanProblem& p) {
  return (p.machine.world + p.machine.local_world - 1) / p.machine.local_world;
}

/// The table of an explicit cut in Megatron's notation: "Et*7|t*8|…|t*7L".
std::string layout_words(const PlanProblem& p, const Candidate& c) {
  std::string out;
  for (int stage = 0; stage < c.pipeline; ++stage)
    out += concat(stage ? "|" : "E", "t*", stage_layers(p, c, stage), stage == c.pipeline - 1 ? "L" : "");
  return out;
}

/// As our trainer takes it: "7,8,8,7".
std::string layer_list(const PlanProblem& p, const Candidate& c) {
  std::string out;
  for (int stage = 0; stage < c.pipeline; ++stage) out += concat(stage ? "," : "", stage_layers(p, c, stage));
  return out;
}

void pipeline_options(std::ostream& out, const PlanProblem& p, const Candidate& c, bool ours) {
  const int layers = p.model.layers;
  if (c.chunks > 1) {
    const bool embedding = c.counts_embedding, loss = c.counts_head;  // L2: each counts as a layer
    out << " --num-layers-per-virtual-pipeline-stage " << (layers + embedding + loss) / c.pipeline / c.chunks;
    if (embedding) out << " --account-for-embedding-in-pipeline-split";
    if (loss) out << " --account-for-loss-in-pipeline-split";
    return;
  }
  bool even = true, middle_even = true;
  for (int stage = 0; stage < c.pipeline; ++stage) {
    even = even && stage_layers(p, c, stage) == stage_layers(p, c, 0);
    if (stage > 1 && stage < c.pipeline - 1)
      middle_even = middle_even && stage_layers(p, c, stage) == stage_layers(p, c, 1);
  }
  if (even) return;
  if (middle_even && c.pipeline > 2)
    out << " --decoder-first-pipeline-num-layers " << stage_layers(p, c, 0)
        << " --decoder-last-pipeline-num-layers " << stage_layers(p, c, c.pipeline - 1);
  else if (ours)
    out << " --pipeline-layers " << layer_list(p, c);
  else
    out << " --pipeline-model-parallel-layout \"" << layout_words(p, c) << '"';
}

void recompute_options(std::ostream& out, const PlanProblem& p, const Candidate& c) {
  switch (c.recompute) {
    case Recomputed::kNone:
      return;
    case Recomputed::kAttention:
      out << " --recompute-granularity selective";
      return;
    case Recomputed::kNormAct:
      out << " --recompute-granularity selective --recompute-modules layernorm mlp_act";
      return;
    case Recomputed::kProducts:
      return;  // torchtitan's; Megatron has no option for it
    case Recomputed::kFull:
      out << " --recompute-granularity full --recompute-method ";
      if (const int most = most_stage_layers(p, c); recomputed_layers(c, most) == most)
        out << "uniform --recompute-num-layers 1";
      else  // Megatron counts in each chunk
        out << "block --recompute-num-layers " << recomputed_of_chunk(c);
  }
}

std::string program(const PlanProblem& p, const Candidate& c, bool ours) {
  return concat(ours ? "megalith-pretrain" : "pretrain_gpt.py", ' ', model_options(p.model, ours),
                ours ? p.run_words : p.megatron_words, ' ', launch_options(p, c, ours));
}

/// The same between single quotes.
std::string quoted_program(const PlanProblem& p, const Candidate& c, bool ours) {
  std::string out;
  for (const char sign : program(p, c, ours)) sign == '\'' ? out += "'\\''" : out += sign;
  return out;
}

/// X2: collectives beside products need one queue before Blackwell, FSDP's several.
std::string environment(const PlanProblem& p, const Candidate& c) {
  if (p.trained_here) return "";
  const bool blackwell = p.machine.device.fp4_flops > 0;
  const bool beside = c.tensor > 1 || c.context > 1;
  return !blackwell && beside && c.sharding < Sharding::kGradients ? "CUDA_DEVICE_MAX_CONNECTIONS=1 " : "";
}

/// ZeRO's stages in Megatron's words, or in our trainer's; Megatron FSDP takes checkpoints of its own format.
void sharding_options(std::ostream& out, const Candidate& c, bool ours) {
  if (c.sharding == Sharding::kOptimizer) out << " --use-distributed-optimizer";
  if (c.sharding <= Sharding::kOptimizer) return;
  if (ours) {
    out << " --sharding stage" << static_cast<int>(c.sharding);
    return;
  }
  out << " --use-megatron-fsdp --data-parallel-sharding-strategy "
      << (c.sharding == Sharding::kGradients ? "optim_grads" : "optim_grads_params")
      << " --ckpt-format fsdp_dtensor";
}

void precision_options(std::ostream& out, const PlanProblem& p) {
  const auto eight_bits = [&](const char* format, const char* recipe) {
    const std::string& scaled = p.fp8_recipe;
    out << " --bf16 --fp8-format " << (p.fp8_format.empty() ? format : p.fp8_format.c_str());
    if (!scaled.empty() || *recipe) out << " --fp8-recipe " << (scaled.empty() ? recipe : scaled.c_str());
  };
  if (p.precision == Precision::kFp8) eight_bits("hybrid", "");
  if (p.precision == Precision::kMxfp8) eight_bits("e4m3", "mxfp8");
  if (p.precision == Precision::kNvfp4) out << " --bf16 --fp4-format e2m1";
  if (p.precision == Precision::kHalf) out << (p.fp16 ? " --fp16" : " --bf16");
}

/// How attention is computed where it is not Megatron's own choice; our trainer has one way.
const char* attention_options(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kTorch:
      return " --attention-backend unfused --no-masked-softmax-fusion";
    case AttentionKernel::kFusedSoftmax:
      return " --attention-backend unfused";
    case AttentionKernel::kFlash1:
    case AttentionKernel::kFlash2:
      return " --attention-backend flash";
    case AttentionKernel::kFused:
      break;
  }
  return "";
}

std::string torchrun(const PlanProblem& p, const Candidate& c, bool ours) {
  return concat(environment(p, c), "torchrun --nnodes ", machines(p), " --nproc_per_node ",
                p.machine.local_world,
                " --node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT ",
                ours ? "--no-python " : "", program(p, c, ours));
}

std::string slurm(const PlanProblem& p, const Candidate& c, bool ours) {
  const std::string devices =
      p.trained_here ? "" : concat("\n#SBATCH --gpus-per-node=", p.machine.local_world);
  return concat("#!/bin/bash\n#SBATCH --nodes=", machines(p),
                "\n#SBATCH --ntasks-per-node=", p.machine.local_world, devices,
                "\n#SBATCH --exclusive\nset -euo pipefail\nexport MASTER_ADDR=$(scontrol show hostnames "
                "\"$SLURM_JOB_NODELIST\" | "
                "head -n 1) MASTER_PORT=29500\n",
                launch_line(p, c, Launcher::kSrun, ours), '\n');
}

/// What Kubernetes calls the devices, by their maker's plugin.
const char* device_resource(const std::string& device) {
  if (device.starts_with("MI")) return "amd.com/gpu";
  return device.starts_with("Ascend") || device.starts_with("910") ? "huawei.com/Ascend910"
                                                                   : "nvidia.com/gpu";
}

/// What the ranks of a machine share of a processor that is planned for, as a container's quantities.
struct ProcessorShare {
  std::string cpus = std::to_string(usable_cpus()), memory;
  explicit ProcessorShare(const PlanProblem& p)
      : memory(concat(std::max(int64_t{1}, static_cast<int64_t>(p.machine.device.memory *
                                                                p.machine.local_world / (1 << 30))),
                      "Gi")) {}
};

Json worker(const PlanProblem& p, const Candidate& c, bool ours) {
  Json limits = Json::object(), resources = Json::object(), container = Json::object();
  if (p.trained_here) {
    const ProcessorShare share(p);
    limits.set("cpu", share.cpus);
    limits.set("memory", share.memory);
  } else {
    limits.set(device_resource(p.machine.device.name), p.machine.local_world);
  }
  resources.set("limits", std::move(limits));
  container.set("name", "pytorch");
  container.set("image", "IMAGE");
  Json command = Json::array();
  for (const char* word : {"bash", "-c"}) command.push_back(word);
  command.push_back(concat(environment(p, c), "torchrun --nnodes ", machines(p), " --nproc_per_node ",
                           p.machine.local_world,
                           " --node_rank $RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT ",
                           ours ? "--no-python " : "", program(p, c, ours)));
  container.set("command", std::move(command));
  container.set("resources", std::move(resources));
  return container;
}

/// Kubernetes reads JSON as YAML, so one writer does for both.
std::string kubernetes(const PlanProblem& p, const Candidate& c, bool ours) {
  const auto replicas = [&](int count) {
    Json containers = Json::array(), spec = Json::object(), pod = Json::object(), out = Json::object();
    containers.push_back(worker(p, c, ours));
    spec.set("containers", std::move(containers));
    pod.set("spec", std::move(spec));
    out.set("replicas", count);
    out.set("restartPolicy", "OnFailure");
    out.set("template", std::move(pod));
    return out;
  };
  Json specs = Json::object(), spec = Json::object(), metadata = Json::object(), job = Json::object();
  specs.set("Master", replicas(1));
  if (machines(p) > 1) specs.set("Worker", replicas(machines(p) - 1));
  spec.set("pytorchReplicaSpecs", std::move(specs));
  metadata.set("name", "megalith-pretrain");
  job.set("apiVersion", "kubeflow.org/v1");
  job.set("kind", "PyTorchJob");
  job.set("metadata", std::move(metadata));
  job.set("spec", std::move(spec));
  return job.dump(2) + '\n';
}

std::string dlc(const PlanProblem& p, const Candidate& c, bool ours) {
  Json resource = Json::object(), spec = Json::object(), specs = Json::array(), job = Json::object();
  if (p.trained_here) {
    const ProcessorShare share(p);
    resource.set("CPU", share.cpus);
    resource.set("Memory", share.memory);
  } else {
    resource.set("GPU", std::to_string(p.machine.local_world));
    resource.set("GPUType", p.machine.device.name);
  }
  spec.set("Type", "Worker");
  spec.set("PodCount", machines(p));
  spec.set("Image", "IMAGE");
  spec.set("ResourceConfig", std::move(resource));
  specs.push_back(std::move(spec));
  job.set("DisplayName", "megalith-pretrain");
  job.set("JobType", "PyTorchJob");
  job.set("JobSpecs", std::move(specs));
  job.set("UserCommand",  // DLC's WORLD_SIZE and RANK count machines
          concat(environment(p, c), "torchrun --nnodes $WORLD_SIZE --nproc_per_node ", p.machine.local_world,
                 " --node_rank $RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT ",
                 ours ? "--no-python " : "", program(p, c, ours)));
  return job.dump(2) + '\n';
}

}  // namespace

std::string launch_options(const PlanProblem& p, const Candidate& c, bool ours) {
  std::ostringstream out;
  out << "--tensor-model-parallel-size " << c.tensor << " --pipeline-model-parallel-size " << c.pipeline;
  if (c.context > 1) out << " --context-parallel-size " << c.context;
  if (p.model.has_experts())
    out << " --expert-model-parallel-size " << c.expert << " --expert-tensor-parallel-size "
        << c.expert_tensor;
  pipeline_options(out, p, c, ours);
  out << " --micro-batch-size " << c.micro_batch << " --global-batch-size " << c.global_batch;
  if (c.sequence) out << " --sequence-parallel";
  if (c.sequence && p.software.overlap_tensor) out << " --tp-comm-overlap";
  const bool exchanged = holders(p, c) > 1;
  if (exchanged && p.software.overlap_gradients) out << " --overlap-grad-reduce";
  if (exchanged && c.sharding == Sharding::kOptimizer && p.software.overlap_parameters)
    out << " --overlap-param-gather";
  if (p.model.has_experts() && p.software.overlap_exchange) out << " --overlap-moe-expert-parallel-comm";
  if (!ours && c.chunks > 1 && !p.software.overlap_messages) out << " --no-overlap-p2p-communication";
  sharding_options(out, c, ours);
  recompute_options(out, p, c);
  if (!ours) out << attention_options(p.software.attention);
  if (!ours && p.half() && p.software.gradient_bytes < 4) out << " --grad-reduce-in-bf16";
  precision_options(out, p);
  return out.str();
}

std::string launch_line(const PlanProblem& p, const Candidate& c, Launcher launcher, bool ours) {
  switch (launcher) {
    case Launcher::kTorchrun:
      return torchrun(p, c, ours);
    case Launcher::kSrun:
      return concat("srun --nodes ", machines(p), " --ntasks-per-node ", p.machine.local_world,
                    " bash -c 'RANK=$SLURM_PROCID "
                    "LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS ",
                    environment(p, c), "exec ", ours ? "" : "python ", quoted_program(p, c, ours), "'");
    case Launcher::kMpirun:
      return concat("mpirun -np ", p.machine.world, " --map-by ppr:", p.machine.local_world,
                    ":node bash -c 'RANK=$OMPI_COMM_WORLD_RANK LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK "
                    "WORLD_SIZE=$OMPI_COMM_WORLD_SIZE ",
                    environment(p, c), "exec ", ours ? "" : "python ", quoted_program(p, c, ours), "'");
  }
  return {};
}

std::string job_text(const PlanProblem& p, const Candidate& c, JobKind kind, bool ours) {
  switch (kind) {
    case JobKind::kNone:
      return {};
    case JobKind::kSlurm:
      return slurm(p, c, ours);
    case JobKind::kKubernetes:
      return kubernetes(p, c, ours);
    case JobKind::kDlc:
      return dlc(p, c, ours);
  }
  return {};
}

}  // namespace megalith
