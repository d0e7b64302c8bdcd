#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/config/parallel_config.h"
#include "libcore/plan/launch/launch.h"
#include "libcore/plan/price/code_base.h"
#include "libcore/plan/request/plan_target.h"
#include "libcore/plan/search/search.h"

namespace megalith {

inline std::vector<EnumName<SearchMode>> enum_names(SearchMode) {
  return {{"bounded", SearchMode::kBounded}, {"exhaustive", SearchMode::kExhaustive}};
}
inline std::vector<EnumName<AttentionKernel>> enum_names(AttentionKernel) {
  return {{"fused", AttentionKernel::kFused},
          {"flash2", AttentionKernel::kFlash2},
          {"flash1", AttentionKernel::kFlash1},
          {"fused-softmax", AttentionKernel::kFusedSoftmax},
          {"torch", AttentionKernel::kTorch}};
}

/// Options that only the planner has.
struct PlanOptions : PlanTarget {
  std::vector<std::string> gpu_files, calibrations;
  std::optional<double> network_gbps;
  std::optional<int> link_domain;
  std::string cluster, hf, coefficients, software;
  std::vector<std::string> features;
  int top = 10;
  SearchMode search = SearchMode::kBounded;
  std::optional<std::string> tuning_type;
  std::optional<int> lora_rank;
  bool qlora = false;
  AttentionKernel attention = AttentionKernel::kFused;
  bool account_embedding = false, account_loss = false, expandable_segments = false;
  std::optional<int> expert_tensor;
  bool overlap_messages = true, overlap_gradients = true, overlap_tensor = true, overlap_exchange = false;
  std::optional<bool> overlap_parameters;  // unset: the value of overlap_gradients
  bool reduce_in_bf16 = false, softmax_fusion = true, megatron_fsdp = false;
  std::string attention_backend, sharding_strategy, pipeline_layout;
  std::optional<bool> flash_attention;
  std::string transformer_impl;
  std::vector<std::string> recompute_modules;
  int optimizer_instances = 1;
  std::string fp8_format, fp8_recipe, fp4_format;
  double gpu_hour = 0, fit_probability = 0.95;
  std::optional<double> train_tokens, deadline_days, budget;
  JobKind emit = JobKind::kNone;
  std::string html, simulate, verify_log, anchor;
  bool explain = false, json = false;

  template <class V>
  void fields(V&& v) {
    PlanTarget::fields(v);
    v("gpu-file", gpu_files, "Files with more kinds of device, in the form of docs/gpus.yaml.",
      metavar("FILE"));
    v("cluster", cluster,
      "Take gpu, world-size, local-world-size, link-domain, network-gbps, device-memory-gb and "
      "gpu-hour-price "
      "from a YAML file, where the command line does not give them.",
      metavar("FILE"));
    v("network-gbps", network_gbps, "Network between machines in Gbit/s for each device.", positive(),
      default_text("the device's usual"));
    v("link-domain", link_domain,
      "Devices that fast links join, of several machines (a rack of GB200: 72) or of a part of one (a pair).",
      between(1, ParallelConfig::kMaxRanks),
      default_text("those of a machine; the device's own where that is more than any machine has"));
    v("hf", hf,
      "Take the model's shape from a Hugging Face config.json, the folder that holds it, or a model's id.",
      metavar("FILE"));
    v("coefficients", coefficients, "Lines \"name value\" in place of the model's own coefficients.",
      metavar("FILE"));
    v("search", search,
      "Price every candidate, or skip those that a bound proves worse; both give the same plans.");
    v("software", software, "Program that trains; docs/planner.md says what is known of each.",
      one_of(code_base_names()),
      default_text("megatron; megalith with --gpu local, --finetuning-type or --lora-rank"));
    v("software-features", features, "Features that the run adds to the defaults of the program.",
      one_of(feature_words()));
    v("finetuning-type", tuning_type,
      "Plan the tuning of an existing model: of all its parameters, or of LoRA adapters.",
      one_of({"full", "lora"}), default_text("lora with --lora-rank, else the training of a new model"));
    v("lora-rank", lora_rank,
      "Rank of LoRA adapters on all linear layers of the transformer layers; all else is frozen.",
      between(1, 4096), alias({"lora-r"}), default_text("8 with --finetuning-type lora"));
    v("qlora", qlora, "With LoRA, keep the linear layers' own weights in 8 bits with a scale for each row.",
      alias({"load-in-8bit"}));
    v("attention-kernel", attention, "How attention is computed; the last two keep the scores.",
      default_text("fused, or the software's own"));
    v("attention-backend", attention_backend,
      "As --attention-kernel, in Megatron's words: unfused and local keep the scores, flash is flash2.",
      one_of({"auto", "flash", "fused", "unfused", "local"}), default_text("attention-kernel"));
    v("use-flash-attn", flash_attention, "false: keep the scores, as --attention-backend unfused does.",
      alias({"use-flash-attention"}), default_text("as --attention-backend says"));
    v("transformer-impl", transformer_impl,
      "Megatron's own modules (local) keep the scores, unless --use-flash-attn is given.",
      one_of({"transformer_engine", "local"}), default_text("transformer_engine"));
    v("masked-softmax-fusion", softmax_fusion,
      "Compute softmax in one kernel where scores are kept (fused-softmax), else as torch does.");
    v("recompute-modules", recompute_modules,
      "What --recompute-granularity selective takes: core_attn, or layernorm mlp_act; products for "
      "torchtitan.",
      metavar("NAME"), default_text("core_attn"));
    v("overlap-p2p-communication", overlap_messages,
      "Messages of an interleaved pipeline overlap with other work.",
      default_text("on, or the software's own"));
    v("overlap-grad-reduce", overlap_gradients, "Gradients are reduced during the last backward pass.",
      default_text("on, or the software's own"));
    v("overlap-param-gather", overlap_parameters,
      "The distributed optimizer's parameters are gathered during the first forward pass.",
      default_text("as --overlap-grad-reduce"));
    v("tp-comm-overlap", overlap_tensor,
      "Tensor ranks exchange in pieces during matrix products, with sequence parallelism.",
      default_text("on, or the software's own"));
    v("grad-reduce-in-bf16", reduce_in_bf16,
      "Keep and sum gradients in 16 bits; such a plan is for Megatron-LM only.");
    v("use-megatron-fsdp", megatron_fsdp,
      "Divide what --data-parallel-sharding-strategy names, as --sharding does.", alias({"use-custom-fsdp"}));
    v("data-parallel-sharding-strategy", sharding_strategy, "What Megatron FSDP divides: ZeRO-0 to 3.",
      one_of({"no_shard", "optim", "optim_grads", "optim_grads_params"}), default_text("no_shard"));
    v("pipeline-model-parallel-layout", pipeline_layout,
      "Layers of each stage in Megatron's notation, such as Et*7|t*8|t*7L; see --pipeline-layers.",
      metavar("TABLE"));
    v("account-for-embedding-in-pipeline-split", account_embedding,
      "Count the embedding as a layer of the first stage.");
    v("account-for-loss-in-pipeline-split", account_loss, "Count the head as a layer of the last stage.");
    v("expert-tensor-parallel-size", expert_tensor, "Ranks that share the matrices of each expert.",
      between(1, 1024), default_text("searched"));
    v("overlap-moe-expert-parallel-comm", overlap_exchange,
      "Tokens travel to their experts while another micro-batch is computed.");
    v("expandable-segments", expandable_segments, "PyTorch's allocator runs with expandable segments.");
    v("num-distributed-optimizer-instances", optimizer_instances,
      "Refused above 1: the optimizer's state is sharded over all data ranks.", at_least(1), unlisted());
    v("fp8-format", fp8_format, "Matrix products in 8 bits.", one_of({"hybrid", "e4m3"}),
      default_text("16 bits"));
    v("fp8-recipe", fp8_recipe, "How products in 8 bits are scaled.",
      one_of({"tensorwise", "delayed", "blockwise", "mxfp8"}), default_text("delayed"));
    v("fp4-format", fp4_format, "Matrix products in 4 bits.", one_of({"e2m1"}), default_text("16 bits"));
    v("fit-probability", fit_probability,
      "Probability with which a plan must not run out of memory; what megalith-pretrain counts is certain.",
      between(0.5, 0.999), default_text("0.95; 0.5 for given tensor, pipeline and micro-batch sizes"));
    v("gpu-hour-price", gpu_hour, "Price of a device for an hour; 0: costs are not printed.", at_least(0));
    v("train-tokens", train_tokens, "Print how long this many tokens take on 1, 2, 4 ... devices.",
      positive(), default_text("with --deadline-days or --budget those of --train-samples or --train-iters"));
    v("deadline-days", deadline_days, "Print the fewest devices that finish within this many days.",
      positive());
    v("budget", budget, "Print the numbers of devices that cost no more than this; needs --gpu-hour-price.",
      positive());
    v("explain", explain,
      "Print more than the best plan: the others, what memory and time consist of, all launch lines, the "
      "Pareto front, and the fewest devices, longest sequence and most layers that have a plan.");
    v("emit", emit, "Print a job for a scheduler in place of the tables.");
    v("html", html, "Write a page with memory bars, the pipeline's timeline and the Pareto front there.",
      metavar("FILE"));
    v("simulate", simulate,
      "Simulate one step of this version's trainer on these numbers of devices, each with its best plan, in "
      "place "
      "of plans.",
      metavar("N,N"));
    v("verify-log", verify_log,
      "Print predicted against measured for the run of a Megatron-LM log, in place of plans.",
      metavar("FILE"));
    v("anchor", anchor, "Scale the rates so that the run of this Megatron-LM log is predicted as it was.",
      metavar("FILE"));
    v("calibrate", calibrations,
      "Take the rates from measurements: a device's profile (megalith-autoplan profile), what a program of "
      "nccl-tests printed on one machine or on several, or a Megatron-LM log as --anchor does.",
      metavar("FILE"));
    v("top", top, "Plans to print, in a table below the best one.", between(1, 1000),
      default_text("10 with --explain, --html and --json, otherwise the best one"));
    v("json", json, "Print one JSON object instead of tables.");
  }
  void validate(Problems&) const;
  const CodeBase& base() const {
    const bool ours = local() || tuning().finetunes;
    return code_base(!software.empty() ? software : ours ? kMegalithSoftware : kMegatronSoftware);
  }
  PlannedTuning tuning() const;
};

extern template std::vector<Field> fields_of<PlanOptions>(PlanOptions&);

}  // namespace megalith
