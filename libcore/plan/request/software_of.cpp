#include "libcore/plan/request/software_of.h"

#include "libcore/base/error.h"
#include "libcore/plan/price/trainer.h"

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

/// The value of --attention-kernel, or else the kernel of Megatron's --attention-backend.
AttentionKernel attention_of(const PlanCommand& command, const Accelerator& device) {
  const PlanOptions& plan = command.plan;
  if (plan.local()) return plan.attention;  // our trainer has only one kernel
  const bool kernel_given = command.gives("attention-kernel");
  const std::string backend = backend_of(plan, kernel_given);
  const bool kept = backend == "unfused" || backend == "local";
  if (!plan.attention_backend.empty() && kernel_given)
    fail(ErrorKind::kUsage,
         "--attention-backend and --attention-kernel set the same property; leave one of them out");
  if (!plan.softmax_fusion && !kept && plan.attention != AttentionKernel::kTorch)
    fail(ErrorKind::kUsage,
         "--no-masked-softmax-fusion has no effect where no scores are kept; give --attention-backend "
         "unfused, or leave it out");
  if (kept) return plan.softmax_fusion ? AttentionKernel::kFusedSoftmax : AttentionKernel::kTorch;
  if (backend == "flash") return AttentionKernel::kFlash2;
  return device.flash || kernel_given ? plan.attention : AttentionKernel::kFusedSoftmax;
}

}  // namespace

Software software_of(const PlanCommand& command, const Accelerator& device) {
  const PlanOptions& plan = command.plan;
  Software software = plan.local() ? trainer_software() : Software{};
  software.attention = attention_of(command, device);
  if (plan.reduce_in_bf16 && plan.local())
    fail(ErrorKind::kUsage,
         "--grad-reduce-in-bf16: on this machine's processor gradients are fp32; leave it out");
  if (plan.reduce_in_bf16) software.gradient_bytes = 2;
  software.overlap_messages = plan.overlap_messages;
  software.overlap_exchange = plan.overlap_exchange;
  software.overlap_tensor = plan.overlap_tensor && device.tensor_overlap;
  software.overlap_gradients = plan.overlap_gradients;
  software.overlap_parameters = plan.overlap_parameters.value_or(plan.overlap_gradients);
  software.expandable_segments = plan.expandable_segments;
  return software;
}

}  // namespace megalith
