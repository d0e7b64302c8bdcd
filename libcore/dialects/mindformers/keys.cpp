#include "libcore/dialects/mindformers/keys.h"

namespace megalith {
namespace {

/// A line of the table: several keys, separated by blanks, with the same meaning.
struct Row {
  std::string_view paths;
  RunKey key;
};

constexpr Row renamed(std::string_view paths, const char* option) {
  return {paths, {{.name = {}}, KeyUse::kRenamed, option}};
}
constexpr Row used(std::string_view paths, KeyUse use) {
  return {paths, {{.name = {}}, use}};
}
/// Keys that must have one of these values when a model is trained.
constexpr Row fixed(std::string_view paths, std::string_view values, std::string_view remedy,
                    KeyUse use = KeyUse::kNamed) {
  return {paths, {{.name = {}, .remedy = remedy, .plain = values}, use}};
}

constexpr Row kRows[] = {
    renamed("parallel_config.data_parallel", "data-parallel-size"),
    renamed("parallel_config.model_parallel", "tensor-model-parallel-size"),
    renamed("parallel_config.pipeline_stage", "pipeline-model-parallel-size"),
    renamed("parallel_config.context_parallel", "context-parallel-size"),
    renamed("parallel_config.expert_parallel", "expert-model-parallel-size"),
    renamed("parallel_config.use_seq_parallel", "sequence-parallel"),
    renamed("parallel_config.gradient_aggregation_group", "ddp-num-buckets"),
    renamed("recompute_config.select_recompute", "recompute-activations"),
    renamed("optimizer.beta1", "adam-beta1"),
    renamed("optimizer.beta2", "adam-beta2"),
    renamed("optimizer.eps", "adam-eps"),
    renamed("optimizer.weight_decay", "weight-decay"),
    renamed("lr_schedule.lr_end", "min-lr"),
    renamed("lr_schedule.warmup_steps", "lr-warmup-iters"),
    renamed("lr_schedule.warmup_ratio", "lr-warmup-fraction"),
    renamed("lr_schedule.warmup_lr_init", "lr-warmup-init"),
    renamed("runner_wrapper.max_grad_norm", "clip-grad"),
    renamed("callbacks.save_checkpoint_steps", "save-interval"),
    renamed("callbacks.keep_checkpoint_max", "keep-last"),
    renamed("train_dataset.data_loader.dataset_dir", "data-path"),
    renamed("pet_config.lora_rank model.model_config.pet_config.lora_rank", "lora-rank"),
    renamed("pet_config.lora_alpha model.model_config.pet_config.lora_alpha", "lora-alpha"),
    renamed("pet_config.lora_dropout model.model_config.pet_config.lora_dropout", "lora-dropout"),
    renamed("processor.tokenizer.vocab_file", "vocab-file"),
    renamed("processor.tokenizer.merges_file", "merge-file"),
    renamed("output_dir", "save"),
    renamed("predict_data", "prompt"),
    renamed("predict_batch_size", "batch-size"),
    renamed("model.model_config.batch_size", "batch-size"),
    renamed("model.model_config.seq_length", "seq-length"),
    renamed("model.model_config.vocab_size", "vocab-size"),
    renamed("model.model_config.hidden_size", "hidden-size"),
    renamed("model.model_config.num_layers", "num-layers"),
    renamed("model.model_config.num_heads", "num-attention-heads"),
    renamed("model.model_config.intermediate_size", "ffn-hidden-size"),
    renamed("model.model_config.hidden_dropout_rate", "hidden-dropout"),
    renamed("model.model_config.attention_dropout_rate", "attention-dropout"),
    renamed("model.model_config.initializer_range", "init-method-std"),
    renamed("model.model_config.layernorm_epsilon", "norm-epsilon"),
    renamed("model.model_config.rms_norm_eps", "norm-epsilon"),
    renamed("model.model_config.qkv_has_bias", "add-qkv-bias"),
    renamed("model.model_config.theta", "rotary-base"),
    renamed("model.model_config.max_position_embedding", "max-position-embeddings"),
    renamed("model.model_config.eos_token_id", "eos-token-id"),
    renamed("model.model_config.repetition_penalty", "repetition-penalty"),
    renamed("model.model_config.max_decode_length", "max-length"),
    renamed("model.model_config.max_new_tokens", "max-new-tokens"),
    renamed("model.model_config.temperature", "temperature"),
    renamed("model.model_config.top_k", "top-k"),
    renamed("model.model_config.top_p", "top-p"),
    renamed("model.model_config.do_sample", "do-sample"),
    fixed(
        "parallel.parallel_mode", "0|1|3|data_parallel|semi_auto_parallel|hybrid_parallel",
        "megalith-autoplan --config FILE --global-batch-size N finds a layout; write it as parallel_config, "
        "with parallel_mode 1",
        KeyUse::kCombined),
    fixed("optimizer.type",
          "AdamW|AdamWeightDecay|FusedAdamWeightDecay|FP32StateAdamWeightDecay|FusedCastAdamWeightDecay|"
          "PmaAdamW",
          "only AdamW is supported", KeyUse::kCombined),
    fixed("lr_scale", "false", "set it to False: there is one rate for all layers"),
    fixed("layer_scale", "false", "set it to False: there is one rate for all layers"),
    fixed("moe_config.expert_num", "1", "set it to 1: the feed-forward block is dense"),
    fixed("train_dataset.data_loader.shuffle", "true", "set it to True: samples are always shuffled"),
    fixed("train_dataset.drop_remainder", "true", "set it to True: batches are always whole"),
    fixed("runner_wrapper.scale_sense.scale_factor", "2",
          "set it to 2: the loss scale is doubled and halved"),
    fixed("model.model_config.extend_method", "none", "set it to None: rotary angles are as in training"),
    used("model.model_config.hidden_act", KeyUse::kCombined),
    fixed("model.model_config.type", "GPT2Config|LlamaConfig",
          "only GPT2Config and LlamaConfig are supported", KeyUse::kCombined),
    // Keys of files that train adapters (configs/gpt2/run_gpt2_lora.yaml).
    fixed("pet_config.pet_type model.model_config.pet_config.pet_type", "none",
          "megalith-finetune --config FILE trains adapters of LoRA, with --model, --data and --output-dir "
          "where the file names no folders of this machine"),
    used("use_parallel load_checkpoint resume_training do_eval eval_step_interval micro_batch_interleave_num "
         "context.device_target context.max_device_memory parallel.enable_parallel_optimizer "
         "parallel_config.optimizer_shard parallel_config.micro_batch_num recompute_config.recompute "
         "runner_config.batch_size runner_config.epochs runner_config.gradient_accumulation_steps "
         "runner_wrapper.use_clip_grad runner_wrapper.scale_sense.type "
         "runner_wrapper.scale_sense.loss_scale_value runner_wrapper.scale_sense.scale_window "
         "optimizer.betas optimizer.learning_rate lr_schedule.type lr_schedule.learning_rate "
         "lr_schedule.total_steps train_dataset.batch_size model.model_config.compute_dtype "
         "model.model_config.expand_ratio model.model_config.multiple_of "
         "model.model_config.ffn_dim_multiplier model.model_config.n_kv_heads "
         "pet_config.target_modules model.model_config.pet_config.target_modules "
         "model.model_config.checkpoint_name_or_path callbacks.type callbacks.per_print_times",
         KeyUse::kCombined),
    used("train_dataset.* train_dataset_task.* eval_dataset.* eval_dataset_task.* processor.* metric.* "
         "eval_callbacks eval_callbacks.*",
         KeyUse::kForeign),
    // vocab_emb_dp is ignored, because here the embedding table is always divided over the tensor ranks, with
    // the same results.
    used("context.* parallel.* parallel_optimizer_config.* parallel_config.vocab_emb_dp "
         "parallel_config.mem_coeff recompute_config.select_comm_recompute "
         "recompute_config.parallel_optimizer_comm_recompute recompute_config.mp_comm_recompute "
         "recompute_config.recompute_slice_activation runner_config.* runner_wrapper.* moe_config.* "
         "pet_config.* model.model_config.pet_config.* trainer.* callbacks callbacks.* model.arch.* "
         "model.model_config.param_init_type model.model_config.layernorm_compute_type "
         "model.model_config.softmax_compute_type model.model_config.layernorm_dtype "
         "model.model_config.softmax_dtype model.model_config.rotary_dtype "
         "model.model_config.embedding_init_type model.model_config.bos_token_id "
         "model.model_config.pad_token_id model.model_config.ignore_token_id model.model_config.use_past "
         "model.model_config.use_past_shard model.model_config.is_dynamic model.model_config.pretrain_seqlen "
         "model.model_config.compute_in_2d model.model_config.use_flash_attention "
         "model.model_config.use_prompt_flash_attention model.model_config.offset "
         "model.model_config.fine_grain_interleave model.model_config.use_rope_slice "
         "model.model_config.layernorm_compute_dtype model.model_config.softmax_compute_dtype "
         "model.model_config.qkv_concat model.model_config.scaling_factor model.model_config.block_size "
         "model.model_config.num_blocks src_strategy_path_or_dir auto_trans_ckpt only_save_strategy "
         "remote_save_url lr_scale_factor layer_decay auto_tune filepath_prefix autotune_per_step profile "
         "profile_start_step profile_stop_step init_start_profile profile_communication profile_memory "
         "eval_epoch_interval",
         KeyUse::kNamed),
};

}  // namespace

const std::vector<RunKey>& run_keys() {
  static const std::vector<RunKey> kAll = one_by_one<RunKey>(kRows);
  return kAll;
}

}  // namespace megalith
