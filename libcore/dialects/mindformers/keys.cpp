#include "libcore/dialects/mindformers/keys.h"

#include <algorithm>
#include <iterator>

namespace megalith {
namespace {

/// A key that is one of our options under another name.
struct Renamed {
  const char* path;
  const char* option;
};
constexpr Renamed kRenamed[] = {
    {"parallel_config.data_parallel", "data-parallel-size"},
    {"parallel_config.model_parallel", "tensor-model-parallel-size"},
    {"parallel_config.pipeline_stage", "pipeline-model-parallel-size"},
    {"parallel_config.context_parallel", "context-parallel-size"},
    {"parallel_config.expert_parallel", "expert-model-parallel-size"},
    {"parallel_config.use_seq_parallel", "sequence-parallel"},
    {"parallel_config.gradient_aggregation_group", "ddp-num-buckets"},
    {"recompute_config.select_recompute", "recompute-activations"},
    {"optimizer.beta1", "adam-beta1"},
    {"optimizer.beta2", "adam-beta2"},
    {"optimizer.eps", "adam-eps"},
    {"optimizer.weight_decay", "weight-decay"},
    {"lr_schedule.lr_end", "min-lr"},
    {"lr_schedule.warmup_steps", "lr-warmup-iters"},
    {"lr_schedule.warmup_ratio", "lr-warmup-fraction"},
    {"lr_schedule.warmup_lr_init", "lr-warmup-init"},
    {"runner_wrapper.max_grad_norm", "clip-grad"},
    {"callbacks.save_checkpoint_steps", "save-interval"},
    {"callbacks.keep_checkpoint_max", "keep-last"},
    {"callbacks.per_print_times", "log-interval"},
    {"train_dataset.data_loader.dataset_dir", "data-path"},
    {"processor.tokenizer.vocab_file", "vocab-file"},
    {"processor.tokenizer.merges_file", "merge-file"},
    {"output_dir", "save"},
    {"predict_data", "prompt"},
    {"predict_batch_size", "batch-size"},
    {"model.model_config.batch_size", "batch-size"},
    {"model.model_config.seq_length", "seq-length"},
    {"model.model_config.vocab_size", "vocab-size"},
    {"model.model_config.hidden_size", "hidden-size"},
    {"model.model_config.num_layers", "num-layers"},
    {"model.model_config.num_heads", "num-attention-heads"},
    {"model.model_config.intermediate_size", "ffn-hidden-size"},
    {"model.model_config.hidden_dropout_rate", "hidden-dropout"},
    {"model.model_config.attention_dropout_rate", "attention-dropout"},
    {"model.model_config.initializer_range", "init-method-std"},
    {"model.model_config.layernorm_epsilon", "norm-epsilon"},
    {"model.model_config.rms_norm_eps", "norm-epsilon"},
    {"model.model_config.qkv_has_bias", "add-qkv-bias"},
    {"model.model_config.theta", "rotary-base"},
    {"model.model_config.max_position_embedding", "max-position-embeddings"},
    {"model.model_config.eos_token_id", "eos-token-id"},
    {"model.model_config.repetition_penalty", "repetition-penalty"},
    {"model.model_config.max_decode_length", "max-length"},
    {"model.model_config.max_new_tokens", "max-new-tokens"},
    {"model.model_config.temperature", "temperature"},
    {"model.model_config.top_k", "top-k"},
    {"model.model_config.top_p", "top-p"},
    {"model.model_config.do_sample", "do-sample"},
};

/// What to do with files that train adapters (configs/gpt2/run_gpt2_lora.yaml).
constexpr const char* kAdapters = "megalith-finetune --lora trains adapters";

const std::vector<FixedKey>& fixed_keys() {
  static const std::vector<FixedKey> kKeys = {
      {"parallel.parallel_mode",
       {"0", "1", "3", "data_parallel", "semi_auto_parallel", "hybrid_parallel"},
       "megalith-autoplan --config FILE finds a layout; write it as parallel_config, with parallel_mode 1"},
      {"optimizer.type",
       {"AdamW", "AdamWeightDecay", "FusedAdamWeightDecay", "FP32StateAdamWeightDecay",
        "FusedCastAdamWeightDecay", "PmaAdamW"},
       "AdamW is what trains here"},
      {"lr_scale", {"false"}, "set it to False: there is one rate for all layers"},
      {"layer_scale", {"false"}, "set it to False: there is one rate for all layers"},
      {"moe_config.expert_num", {"1"}, "set it to 1: the feed-forward block is dense"},
      {"train_dataset.data_loader.shuffle", {"true"}, "set it to True: samples are always shuffled"},
      {"train_dataset.drop_remainder", {"true"}, "set it to True: batches are always whole"},
      {"runner_wrapper.scale_sense.scale_factor", {"2"}, "set it to 2: the loss scale is doubled and halved"},
      {"model.model_config.extend_method", {"none"}, "set it to None: rotary angles are as in training"},
      {"model.model_config.hidden_act",
       {"gelu", "fast_gelu", "silu"},
       "GPT-2 has GELU in its tanh form, LLaMA SwiGLU"},
      {"model.model_config.type",
       {"GPT2Config", "LlamaConfig"},
       "GPT2Config and LlamaConfig are trained here"},
      {"pet_config.pet_type", {"none"}, kAdapters},
      {"model.model_config.pet_config.pet_type", {"none"}, kAdapters},
  };
  return kKeys;
}

/// Those of in_named_group().
constexpr std::string_view kNamedGroups[] = {"train_dataset",     "train_dataset_task", "eval_dataset",
                                             "eval_dataset_task", "processor",          "metric",
                                             "eval_callbacks"};

/// Those of is_named_key(): keys, and groups ("x.*").
constexpr const char* kNamed[] = {
    "context.*",
    "parallel.*",
    "parallel_optimizer_config.*",
    // no effect, because the sums are the same: the table is cut over the tensor ranks
    "parallel_config.vocab_emb_dp",
    "recompute_config.parallel_optimizer_comm_recompute",
    "recompute_config.mp_comm_recompute",
    "recompute_config.recompute_slice_activation",
    "runner_config.*",
    "runner_wrapper.*",
    "moe_config.*",
    "pet_config.*",
    "model.model_config.pet_config.*",
    "trainer.*",
    "callbacks.*",
    "model.arch.*",
    "model.model_config.param_init_type",
    "model.model_config.layernorm_compute_type",
    "model.model_config.softmax_compute_type",
    "model.model_config.layernorm_dtype",
    "model.model_config.softmax_dtype",
    "model.model_config.rotary_dtype",
    "model.model_config.embedding_init_type",
    "model.model_config.bos_token_id",
    "model.model_config.pad_token_id",
    "model.model_config.ignore_token_id",
    "model.model_config.use_past",
    "model.model_config.use_past_shard",
    "model.model_config.is_dynamic",
    "model.model_config.pretrain_seqlen",
    "model.model_config.compute_in_2d",
    "model.model_config.use_flash_attention",
    "model.model_config.use_prompt_flash_attention",
    "model.model_config.offset",
    "model.model_config.qkv_concat",
    "src_strategy_path_or_dir",
    "auto_trans_ckpt",
    "only_save_strategy",
    "remote_save_url",
    "lr_scale_factor",
    "layer_decay",
    "auto_tune",
    "filepath_prefix",
    "autotune_per_step",
    "profile",
    "profile_start_step",
    "profile_stop_step",
    "init_start_profile",
    "profile_communication",
    "profile_memory",
    "eval_epoch_interval",
};

/// Those of is_combined_key().
constexpr const char* kCombined[] = {
    "use_parallel",
    "load_checkpoint",
    "resume_training",
    "do_eval",
    "eval_step_interval",
    "micro_batch_interleave_num",
    "context.device_target",
    "context.max_device_memory",
    "parallel.parallel_mode",
    "parallel.enable_parallel_optimizer",
    "parallel_config.optimizer_shard",
    "parallel_config.micro_batch_num",
    "recompute_config.recompute",
    "runner_config.batch_size",
    "runner_config.epochs",
    "runner_config.gradient_accumulation_steps",
    "runner_wrapper.use_clip_grad",
    "runner_wrapper.scale_sense.type",
    "runner_wrapper.scale_sense.loss_scale_value",
    "runner_wrapper.scale_sense.scale_window",
    "optimizer.type",
    "optimizer.betas",
    "optimizer.learning_rate",
    "lr_schedule.type",
    "lr_schedule.learning_rate",
    "lr_schedule.total_steps",
    "train_dataset.batch_size",
    "model.model_config.type",
    "model.model_config.compute_dtype",
    "model.model_config.expand_ratio",
    "model.model_config.multiple_of",
    "model.model_config.ffn_dim_multiplier",
    "model.model_config.n_kv_heads",
    "model.model_config.checkpoint_name_or_path",
};

}  // namespace

const char* renamed_key(std::string_view path) {
  for (const Renamed& renamed : kRenamed)
    if (path == renamed.path) return renamed.option;
  return nullptr;
}

const FixedKey* fixed_key(std::string_view path) {
  for (const FixedKey& fixed : fixed_keys())
    if (path == fixed.path) return &fixed;
  return nullptr;
}

bool is_combined_key(std::string_view path) {
  return std::find(std::begin(kCombined), std::end(kCombined), path) != std::end(kCombined);
}

bool in_named_group(const FileOption& option) {
  const std::string_view group = option.group;
  return std::find(std::begin(kNamedGroups), std::end(kNamedGroups), group.substr(0, group.find('.'))) !=
         std::end(kNamedGroups);
}

bool is_named_key(std::string_view path) {
  return std::any_of(std::begin(kNamed), std::end(kNamed), [&](const std::string_view name) {
    return name.ends_with(".*") ? path.starts_with(name.substr(0, name.size() - 1)) : path == name;
  });
}

}  // namespace megalith
