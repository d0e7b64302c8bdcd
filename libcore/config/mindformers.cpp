#include "libcore/config/mindformers.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/base/text.h"

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

/// A key that has to have this value when a model is trained.
struct Fixed {
  const char* path;
  std::vector<std::string> values;
  const char* remedy;
};
const std::vector<Fixed>& fixed_keys() {
  static const std::vector<Fixed> keys = {
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
      {"pet_config.pet_type", {"none"}, "adapters are trained by megalith-finetune"},
  };
  return keys;
}

/// Groups of which nothing else means anything here, whatever their keys are called.
constexpr std::string_view kNamedGroups[] = {"train_dataset",     "train_dataset_task", "eval_dataset",
                                             "eval_dataset_task", "processor",          "metric",
                                             "eval_callbacks"};

/// Keys, and groups ("x.*") but for our own options in them, that say how the framework runs, or repeat what
/// another key says.
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

/// Keys that mean something together.
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

bool in_named_group(const FileOption& option) {
  const std::string_view group = option.group;
  return std::find(std::begin(kNamedGroups), std::end(kNamedGroups), group.substr(0, group.find('.'))) !=
         std::end(kNamedGroups);
}

bool is_named(const std::string& path) {
  return std::any_of(std::begin(kNamed), std::end(kNamed), [&](const std::string& name) {
    return name.ends_with(".*") ? path.starts_with(name.substr(0, name.size() - 1)) : path == name;
  });
}

class Translator {
 public:
  explicit Translator(FileTranslation& file)
      : file_(file), trains_(file.knows("lr")), combined_(std::begin(kCombined), std::end(kCombined)) {}

  void run() {
    std::vector<FileOption> read;
    std::swap(read, file_.options);
    for (const FileOption& option : read)
      if (combined_.count(option.path()) > 0) keys_.emplace(option.path(), option);
    for (const FileOption& option : read) take(option);
    parallel();
    batch();
    steps();
    schedule();
    precision();
    model();
    loading();
    device();
    say_named();
  }

 private:
  void take(const FileOption& option) {
    const std::string path = option.path();
    for (const Fixed& fixed : fixed_keys())
      if (path == fixed.path) return check(option, path, fixed);
    if (combined_.count(path) > 0) return;
    const bool alone = is(key("use_parallel"), "false") && option.group == "parallel_config";
    for (const Renamed& renamed : kRenamed)
      if (path == renamed.path) return alone || option.is_empty() ? name(path) : put(renamed.option, option);
    if (in_named_group(option) || (is_named(path) && !file_.knows(option.key)))
      name(path);
    else
      file_.options.push_back(option);
  }

  void check(const FileOption& option, const std::string& path, const Fixed& fixed) {
    const bool good = option.is_empty() || std::any_of(fixed.values.begin(), fixed.values.end(),
                                                       [&](const auto& value) { return is(&option, value); });
    if (!good && trains_)
      file_.problems.add(option.where, ": ", path, " is ", quote(join(option.words, " ")),
                         ", which is not supported; ", fixed.remedy);
    else if (combined_.count(path) == 0)
      name(path);
  }

  static bool is(const FileOption* option, const std::string& value) {
    return option && option->words.size() == 1 && lower_ascii(option->words[0]) == lower_ascii(value);
  }
  const FileOption* key(const std::string& path) const {
    const auto found = keys_.find(path);
    if (found == keys_.end() || found->second.is_empty()) return nullptr;
    obeyed_.insert(path);
    return &found->second;
  }
  std::optional<int64_t> number(const std::string& path) const {
    const FileOption* option = key(path);
    return option && option->words.size() == 1 ? parse_int(option->words[0]) : std::nullopt;
  }

  void name(const std::string& path) {
    obeyed_.erase(path);
    const std::string shown = path.substr(0, path.find('.'));
    const bool group = shown != "parallel_config" && shown != "model" && shown != "recompute_config";
    const std::string& text = group ? shown : path;
    if (std::find(named_.begin(), named_.end(), text) == named_.end()) named_.push_back(text);
  }
  /// Groups by their names, with what is obeyed of them, because there it is shorter than what is not.
  void say_named() {
    for (const std::string& text : named_) {
      const std::string head = text + ".";
      std::vector<std::string> but;
      for (const std::string& path : obeyed_)
        if (path.starts_with(head)) but.push_back(path.substr(head.size()));
      file_.ignored.push_back(but.empty() ? text : concat(text, " (but for ", join(but, ", "), ')'));
    }
  }
  /// Our option with a key's words, in place of an earlier key's for it; named where the app has no such
  /// option.
  void put(const std::string& option, const FileOption& from, std::vector<std::string> words) {
    if (!file_.knows(option)) return name(from.path());
    obeyed_.insert(from.path());
    FileOption own{.key = option, .words = std::move(words), .where = from.where};
    if (const auto before = put_.find(option);
        before != put_.end())  // a line of our own name stays, and is refused
      std::erase_if(file_.options,
                    [&](const FileOption& one) { return one.key == option && one.where == before->second; });
    put_[option] = own.where;
    file_.options.push_back(std::move(own));
  }
  void put(const std::string& option, const FileOption& from) { put(option, from, from.words); }
  void put(const std::string& option, const std::string& path) {
    if (const FileOption* from = key(path)) put(option, *from);
  }

  void parallel() {
    const FileOption* const shard = key("parallel_config.optimizer_shard");
    const FileOption* const whole = key("parallel.enable_parallel_optimizer");
    if (whole || shard) {
      const bool no = is(whole, "false") || is(shard, "false");
      put("use-distributed-optimizer", *(whole ? whole : shard), {no ? "false" : "true"});
    }
    put("recompute", "recompute_config.recompute");
    const FileOption* const mode = key("parallel.parallel_mode");
    if (!is(mode, "0") && !is(mode, "data_parallel")) return;
    for (const FileOption& option : file_.options)
      if ((option.key == "tensor-model-parallel-size" || option.key == "pipeline-model-parallel-size" ||
           option.key == "context-parallel-size") &&
          !is(&option, "1"))
        file_.problems.add(option.where, ": --", option.key, ' ', join(option.words, " "),
                           " contradicts parallel_mode 0 (data parallel); give parallel_mode 1");
  }

  void batch() {
    int64_t product = 1;
    const FileOption* first = nullptr;
    for (const char* path : {"parallel_config.micro_batch_num", "micro_batch_interleave_num",
                             "runner_config.gradient_accumulation_steps"}) {
      const FileOption* option = key(path);
      if (!option) continue;
      const auto value = number(path);
      if (!value || *value < 1 || *value > (1 << 20)) {
        file_.problems.add(option->where, ": ", path, " is ", quote(join(option->words, " ")),
                           ", wanted a number of micro-batches from 1");
        return;
      }
      product *= *value;
      if (!first) first = option;
    }
    if (first) put("gradient-accumulation-steps", *first, {std::to_string(product)});
    const bool runner = key("runner_config.batch_size") != nullptr;  // it comes before the data set's
    if (runner && key("train_dataset.batch_size")) name("train_dataset.batch_size");
    put("micro-batch-size", runner ? "runner_config.batch_size" : "train_dataset.batch_size");
  }

  void steps() {
    const auto total = number("lr_schedule.total_steps");
    if (total && *total > 0) {
      put("train-iters", "lr_schedule.total_steps");
      if (key("runner_config.epochs")) name("runner_config.epochs");
    } else {
      put("num-epochs", "runner_config.epochs");
    }
    const FileOption* const interval = key("eval_step_interval");
    const bool never = interval && number("eval_step_interval").value_or(1) < 1;
    if (never) {
      log(interval->where, ": eval_step_interval ", interval->words[0], ": no evaluation");
      put("eval-iters", *interval, {"0"});
    } else {
      put("eval-interval", "eval_step_interval");
    }
    const FileOption* const evaluates = key("do_eval");
    if (is(evaluates, "false")) put("eval-iters", *evaluates, {"0"});
  }

  void schedule() {
    put("lr", key("lr_schedule.learning_rate") ? "lr_schedule.learning_rate" : "optimizer.learning_rate");
    if (const FileOption* betas = key("optimizer.betas"); betas && betas->words.size() == 2) {
      put("adam-beta1", *betas, {betas->words[0]});
      put("adam-beta2", *betas, {betas->words[1]});
    }
    if (is(key("runner_wrapper.use_clip_grad"), "false"))
      put("clip-grad", *key("runner_wrapper.use_clip_grad"), {"0"});
    const FileOption* const type = key("lr_schedule.type");
    if (!type) return;
    const std::string course = lower_ascii(type->words[0]);
    for (const auto& [word, style] : {std::pair{"cosine", "cosine"},
                                      {"linear", "linear"},
                                      {"polynomial", "linear"},  // its power is 1
                                      {"constant", "constant"}})
      if (course.starts_with(word)) return put("lr-decay-style", *type, {style});
    if (trains_)
      file_.problems.add(type->where, ": lr_schedule.type is ", quote(type->words[0]),
                         ", wanted one of Cosine, Linear, Constant or polynomial, with warm-up");
  }

  void precision() {
    const FileOption* const type = key("model.model_config.compute_dtype");
    if (!type) return;
    const std::string dtype = lower_ascii(type->words[0]);
    if (dtype == "bfloat16") return put("bf16", *type, {"true"});
    if (dtype != "float16") return name(type->path());
    put("fp16", *type, {"true"});
    const FileOption* const scale = key("runner_wrapper.scale_sense.loss_scale_value");
    const bool fixed = is(key("runner_wrapper.scale_sense.type"), "FixedLossScaleUpdateCell");
    if (scale) put(fixed ? "loss-scale" : "initial-loss-scale", *scale);
    if (!fixed) put("loss-scale-window", "runner_wrapper.scale_sense.scale_window");
  }

  void model() {
    const FileOption* const type = key("model.model_config.type");
    if (const FileOption* groups = key("model.model_config.n_kv_heads")) {
      put("group-query-attention", *groups, {"true"});
      put("num-query-groups", *groups);
    }
    if (is(type, "LlamaConfig"))
      llama(*type);
    else if (const FileOption* ratio = key("model.model_config.expand_ratio"))
      widen(*ratio);
  }

  const FileOption* made(const std::string& option) const {
    for (const FileOption& one : file_.options)
      if (one.key == option) return &one;
    return nullptr;
  }
  std::optional<int64_t> made_number(const std::string& option) const {
    const FileOption* const one = made(option);
    return one ? parse_int(one->words[0]) : std::nullopt;
  }

  void widen(const FileOption& ratio) {
    const auto factor = parse_int(ratio.words[0]), hidden = made_number("hidden-size");
    if (factor && hidden)
      put("ffn-hidden-size", ratio, {std::to_string(*factor * *hidden)});
    else
      put("ffn-hidden-size", ratio);
  }

  void llama(const FileOption& type) {
    constexpr std::pair<const char*, const char*> kLlama[] = {{"swiglu", "true"},
                                                              {"normalization", "RMSNorm"},
                                                              {"position-embedding-type", "rope"},
                                                              {"untie-embeddings-and-output-weights", "true"},
                                                              {"add-bias-linear", "false"},
                                                              {"attention-dropout", "0"},
                                                              {"hidden-dropout", "0"}};
    for (const auto& [option, value] : kLlama)
      if (!made(option)) put(option, type, {value});
    const auto hidden = made_number("hidden-size");
    if (made("ffn-hidden-size") || !hidden) return;
    // LLaMA's rule: two thirds of 4 * hidden, times a factor, up to the next multiple.
    const FileOption* const factor = key("model.model_config.ffn_dim_multiplier");
    const double wider = factor ? parse_double(factor->words[0]).value_or(1) : 1;
    const int64_t multiple = std::max<int64_t>(1, number("model.model_config.multiple_of").value_or(256));
    const auto width = static_cast<int64_t>(wider * static_cast<double>(2 * 4 * *hidden / 3));
    put("ffn-hidden-size", type, {std::to_string((width + multiple - 1) / multiple * multiple)});
  }

  /// Where weights come from; without resume_training a run begins with them at step 0.
  void loading() {
    const FileOption* from = key("load_checkpoint");
    if (!from) from = key("model.model_config.checkpoint_name_or_path");
    if (!from) return;
    if (!trains_) return put("model", *from);
    FileOption load = *from;
    load.where += ": " + from->path();  // complaints are about the key
    put("load", load);
    put("exit-on-missing-checkpoint", *from, {"true"});
    if (!is(key("resume_training"), "true")) put("finetune", *from, {"true"});
  }

  void memory() {
    const FileOption* const most = key("context.max_device_memory");
    if (!most) return;
    const std::string& word = most->words[0];
    const std::string amount = lower_ascii(word).ends_with("gb") ? word.substr(0, word.size() - 2) : word;
    if (parse_double(trim(amount)).value_or(0) > 0)
      put("device-memory-gb", *most, {std::string(trim(amount))});
    else
      file_.problems.add(most->where, ": context.max_device_memory is ", quote(word),
                         ", wanted gigabytes, such as \"31GB\" or 0.5GB");
  }

  void device() {
    memory();
    const FileOption* const target = key("context.device_target");
    if (!target) return;
    if (!is(target, "CPU") && !is(target, "GPU") && !is(target, "Ascend")) {
      file_.problems.add(target->where, ": device_target is ", quote(target->words[0]),
                         ", wanted CPU, GPU or Ascend");
      return;
    }
    int64_t ranks = 1;  // several ranks compute on the CPU
    for (const char* option : {"data-parallel-size", "tensor-model-parallel-size",
                               "pipeline-model-parallel-size", "context-parallel-size"})
      ranks *= std::max<int64_t>(1, made_number(option).value_or(1));
    if (!made("device")) put("device", *target, {ranks > 1 || is(target, "CPU") ? "cpu" : "gpu"});
  }

  FileTranslation& file_;
  const bool trains_;  // or plans
  const std::set<std::string> combined_;
  std::vector<std::string> named_;        // groups and keys that mean nothing here
  mutable std::set<std::string> obeyed_;  // paths of the keys that mean something
  std::map<std::string, std::string>
      put_;  // our options that keys were translated to, and where the key stands
  std::map<std::string, FileOption> keys_;  // those of kCombined, the first of a name
};

}  // namespace

void translate_mindformers(FileTranslation& file) {
  Translator(file).run();
}

void MindFormersRun::validate(Problems& problems) const {
  if (mode && *mode != "train" && *mode != "finetune")
    problems.add(
        "run_mode is ", quote(*mode),
        "; this program does train, megalith-generate predict; give --run-mode train to train anyway");
}

}  // namespace megalith
