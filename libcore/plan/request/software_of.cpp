#include "libcore/plan/request/software_of.h"

#include "libcore/base/error.h"
#include "libcore/plan/price/code_base.h"

namespace megalith {
namespace {

/// The value of --attention-backend, or the value that the older options of Megatron and PaddleNLP imply;
/// kUsage when these options contradict each other.
std::string backend_of(const PlanOptions& plan, bool kernel_given) {
  const std::string& backend = plan.attention_backend;
  const bool flash = plan.flash_attention.value_or(false), local = plan.transformer_impl == "local";
  const bool unfused = plan.flash_attention ? !flash : local;
  const char* const option = plan.flash_attention ? "--use-flash-attn false" : "--transformer-impl local";
  if (unfused && (kernel_given || backend == "flash" || backend == "fused"))
    fail(ErrorKind::kUsage, option, " keeps the scores, ",
         kernel_given ? "and --attention-kernel says how" : "--attention-backend " + backend + " does not",
         "; leave one of them out");
  if (flash && (backend == "unfused" || backend == "local"))
    fail(ErrorKind::kUsage, "--use-flash-attn and --attention-backend ", backend,
         " contradict each other; leave one of them out");
  const bool chosen = !backend.empty() && backend != "auto";
  return chosen || !unfused ? backend : "unfused";
}

/// The value of --attention-kernel, or the kernel of Megatron's --attention-backend, or else the `usual` one
/// of the code base.
AttentionKernel attention_of(const PlanCommand& command, const Accelerator& device, AttentionKernel usual) {
  const PlanOptions& plan = command.plan;
  const bool kernel_given = command.gives("attention-kernel");
  if (kernel_given) usual = plan.attention;
  if (plan.local()) return usual;  // our trainer has only one kernel
  const std::string backend = backend_of(plan, kernel_given);
  const bool kept = backend == "unfused" || backend == "local";
  if (!plan.attention_backend.empty() && kernel_given)
    fail(ErrorKind::kUsage,
         "--attention-backend and --attention-kernel set the same property; leave one of them out");
  const bool unaffected =
      kernel_given ? usual != AttentionKernel::kTorch : !keeps_scores(usual) && device.flash;
  if (!plan.softmax_fusion && !kept && unaffected)
    fail(ErrorKind::kUsage,
         "--no-masked-softmax-fusion has no effect where no scores are kept; give --attention-backend "
         "unfused, or leave it out");
  const AttentionKernel scores =
      plan.softmax_fusion ? AttentionKernel::kFusedSoftmax : AttentionKernel::kTorch;
  if (kept) return scores;
  if (backend == "flash") return AttentionKernel::kFlash2;
  if (backend == "fused") return AttentionKernel::kFused;
  if (kernel_given) return usual;
  return keeps_scores(usual) || !device.flash ? scores : usual;
}

/// The overlaps that the command gives; for our trainer, all of them.
void take_overlaps(const PlanCommand& command, Software& software) {
  const PlanOptions& plan = command.plan;
  const auto take = [&](const char* option, bool& overlap, bool value) {
    if (plan.local() || command.gives(option)) overlap = value;
  };
  take("overlap-p2p-communication", software.overlap_messages, plan.overlap_messages);
  take("overlap-moe-expert-parallel-comm", software.overlap_exchange, plan.overlap_exchange);
  take("tp-comm-overlap", software.overlap_tensor, plan.overlap_tensor);
  take("overlap-grad-reduce", software.overlap_gradients, plan.overlap_gradients);
  take("overlap-grad-reduce", software.overlap_parameters, software.overlap_gradients);  // O1
  take("overlap-param-gather", software.overlap_parameters,
       plan.overlap_parameters.value_or(software.overlap_gradients));
}

}  // namespace

Software software_of(const PlanCommand& command, const Accelerator& device) {
  const PlanOptions& plan = command.plan;
  Software software = default_software(plan.base(), !command.train.fp16 && device.bfloat16);
  for (const std::string& word : plan.features) add_feature(software, word);
  const std::string& graphs = command.train.cuda_graphs;
  if (command.gives("cuda-graph-impl") && graphs != "none" && !software.cuda_graphs &&
      software.code_base != kMegalithSoftware)
    fail(ErrorKind::kUsage, "--cuda-graph-impl ", graphs,
         " is not planned; give --software-features cuda_graphs in its place");
  software.attention = attention_of(command, device, software.attention);
  if (plan.reduce_in_bf16 && plan.local())
    fail(ErrorKind::kUsage,
         "--grad-reduce-in-bf16: on this machine's processor gradients are fp32; leave it out");
  if (plan.reduce_in_bf16) software.gradient_bytes = 2;
  if (command.train.first_moments == MomentType::kBf16) {
    if (software.code_base != kMegalithSoftware)
      fail(ErrorKind::kUsage, "--exp-avg-dtype bf16 is planned for --software ", kMegalithSoftware,
           ", not for ", software.code_base, "; leave it out");
    if (software.adam_8bit)
      fail(ErrorKind::kUsage,
           "--exp-avg-dtype bf16 is given, and --software-features adam_8bit, whose "
           "moments have 8 bits; leave one of them out");
    software.first_moment_bytes = 2;
  }
  take_overlaps(command, software);
  software.overlap_tensor = software.overlap_tensor && device.tensor_overlap;
  software.expandable_segments = plan.expandable_segments;
  return software;
}

}  // namespace megalith
