#include "libcore/dialects/mindformers/run_file.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "libcore/base/flag_word.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/config/activations.h"
#include "libcore/dialects/mindformers/keys.h"

namespace megalith {
namespace {

class Translator {
 public:
  explicit Translator(FileTranslation& file)
      : file_(file), trains_(file.knows("lr")), tunes_(file.knows("lora")), plans_(file.knows("explain")) {}

  void run() {
    std::vector<FileOption> read;
    std::swap(read, file_.options);
    for (const FileOption& option : read)
      if (is_combined(find_fate(run_keys(), option.path()))) keys_.emplace(option.path(), option);
    alone_ = flag("use_parallel") == false;
    for (const FileOption& option : read) take(option);
    parallel();
    batch();
    steps();
    logging(read);
    schedule();
    precision();
    adapters();
    model();
    loading();
    device();
    name_the_unused();
    say_named();
  }

 private:
  static bool is_combined(const RunKey* key) { return key && key->use == KeyUse::kCombined; }
  /// Whether the program takes its layout from the file. megalith-generate, which reads files for training,
  /// too, has options of its own for it: a text is the same in every layout.
  bool lays_out() const { return trains_ || tunes_ || plans_; }

  void take(const FileOption& option) {
    const std::string path = option.path();
    const RunKey* const key = find_fate(run_keys(), path);
    if (tunes_ && take_of_tuning(option)) return;
    if (key && !key->remedy.empty()) return check(option, *key);
    if (is_combined(key)) return;
    const bool unused = (alone_ || !lays_out()) && option.group == "parallel_config";
    if (key && key->use == KeyUse::kRenamed)
      return unused || option.is_empty() ? name(path) : put(key->option, option);
    if (key && (key->use == KeyUse::kForeign || !file_.knows(option.key)))
      name(path);
    else
      file_.options.push_back(option);
  }

  /// Takes a key that means something else where records are learned.
  bool take_of_tuning(const FileOption& option) {
    constexpr std::pair<const char*, const char*> kOptions[] = {
        {"train_dataset.data_loader.dataset_dir", "data"}, {"model.model_config.seq_length", "max-length"}};
    for (const auto& [path, own] : kOptions)
      if (option.path() == path && !option.is_empty()) {
        put(own, option);
        return true;
      }
    const bool lora = is_pet_type(option.path()) && is(&option, "lora");
    if (lora) put("lora", option, {"true"});
    return lora;
  }
  static bool is_pet_type(const std::string& path) {
    return path == "pet_config.pet_type" || path == "model.model_config.pet_config.pet_type";
  }

  void check(const FileOption& option, const RunKey& key) {
    const std::string path = option.path();
    if (!option.is_empty() && refuses(key, option.words) && trains_ && !(plans_ && is_automatic(option)))
      file_.problems.add_at(option.where, path, " is ", quote(join(option.words, " ")),
                            ", which is not supported; ", remedy_of(option, key));
    else if (!is_combined(&key))
      name(path);
    else if (trains_)
      obeyed_.insert(path);
  }

  /// Whether the key asks for a layout that is found automatically, which is what the planner does.
  static bool is_automatic(const FileOption& option) {
    return option.path() == "parallel.parallel_mode" && (is(&option, "2") || is(&option, "auto_parallel"));
  }
  /// What to do instead of the key. Of the adapters, LoRA only needs another program, and prefixes exist here
  /// in another form: MindFormers' PrefixEncoder makes keys and values by a projection with dropout.
  std::string_view remedy_of(const FileOption& option, const RunKey& key) const {
    if (!is_pet_type(option.path()) || is(&option, "lora")) return key.remedy;
    if (is(&option, "prefixtuning"))
      return "prefixes are learned without its projection (mid_dim, dropout_rate): remove pet_config, and "
             "give megalith-finetune --config FILE also --prefix-tuning, and --num-prefix-tokens with its "
             "prefix_token_num";
    return "set it to lora, with lora_rank, lora_alpha and target_modules next to it, for megalith-finetune "
           "--config FILE; or to None, to train all parameters";
  }

  void refuse(const FileOption& option, const char* wanted) {
    file_.problems.add_at(option.where, option.path(), " is ", quote(join(option.words, " ")), ", wanted ",
                          wanted);
  }
  static bool is(const FileOption* option, const std::string& value) {
    if (!option || option->words.size() != 1) return false;
    const std::string& word = option->words[0];
    const bool flags = value == "true" || value == "false";
    return flags ? parse_flag(word) == parse_flag(value) : lower_ascii(word) == lower_ascii(value);
  }
  const FileOption* key(const std::string& path) const {
    const auto found = keys_.find(path);
    if (found == keys_.end() || found->second.is_empty()) return nullptr;
    obeyed_.insert(path);
    return &found->second;
  }
  /// The value of a flag, spelled as for our own options; nothing if the key is missing or its value was
  /// refused.
  std::optional<bool> flag(const std::string& path) {
    const FileOption* const option = key(path);
    if (!option) return std::nullopt;
    const auto value = option->words.size() == 1 ? parse_flag(option->words[0]) : std::nullopt;
    if (!value) refuse(*option, "true or false");
    return value;
  }
  /// The value of an integer key; nothing if the key is missing or its value was refused, for example because
  /// it is less than `min`. `wanted` describes for the message what was expected.
  std::optional<int64_t> whole(const std::string& path, int64_t min, const char* wanted) {
    const FileOption* const option = key(path);
    if (!option) return std::nullopt;
    const auto value = option->words.size() == 1 ? parse_int(option->words[0]) : std::nullopt;
    if (value && *value >= min) return value;
    refuse(*option, wanted);
    return std::nullopt;
  }

  void name(const std::string& path) {
    obeyed_.erase(path);
    const std::string shown = path.substr(0, path.find('.'));
    const bool group = shown != "parallel_config" && shown != "model" && shown != "recompute_config";
    const std::string& text = group ? shown : path;
    if (std::find(named_.begin(), named_.end(), text) == named_.end()) named_.push_back(text);
  }
  /// Lists as ignored those keys that have a meaning only together with other keys, which the file lacks.
  void name_the_unused() {
    for (const auto& [path, option] : keys_)
      if (!option.is_empty() && obeyed_.count(path) == 0) name(path);
  }
  /// Lists the ignored groups. If some keys of a group have an effect, names these as exceptions, because
  /// this is shorter than a list of the other keys.
  void say_named() {
    for (const std::string& text : named_) {
      const std::string head = text + ".";
      std::vector<std::string> but;
      for (const std::string& path : obeyed_)
        if (path.starts_with(head)) but.push_back(path.substr(head.size()));
      file_.ignored.push_back(but.empty() ? text : concat(text, " (except ", join(but, ", "), ')'));
    }
  }
  /// Adds our option with a key's value, and replaces what an earlier key has set. If the app has no such
  /// option, only lists the key as ignored. Problems with the option name the key.
  void put(const std::string& option, const FileOption& from, std::vector<std::string> words) {
    if (!file_.knows(option)) return name(from.path());
    obeyed_.insert(from.path());
    FileOption own{.key = option, .words = std::move(words), .where = concat(from.where, ": ", from.path())};
    // A line with the option under our own name is not replaced; check() then refuses the option because it
    // is given twice.
    if (const auto before = put_.find(option); before != put_.end())
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
    if (!lays_out()) return;
    const FileOption* const shard = key("parallel_config.optimizer_shard");
    const FileOption* const whole = key("parallel.enable_parallel_optimizer");
    const auto shards = flag("parallel_config.optimizer_shard");
    const auto enabled = flag("parallel.enable_parallel_optimizer");
    if (shards || enabled)
      put("use-distributed-optimizer", *(whole ? whole : shard),
          {shards.value_or(true) && enabled.value_or(true) ? "true" : "false"});
    if (alone_)
      for (const char* size :
           {"data-parallel-size", "tensor-model-parallel-size", "pipeline-model-parallel-size"})
        put(size, *key("use_parallel"), {"1"});
    put("recompute", "recompute_config.recompute");
    const FileOption* const mode = key("parallel.parallel_mode");
    if (!is(mode, "0") && !is(mode, "data_parallel")) return;
    for (const FileOption& option : file_.options)
      if ((option.key == "tensor-model-parallel-size" || option.key == "pipeline-model-parallel-size" ||
           option.key == "context-parallel-size") &&
          !is(&option, "1"))
        file_.problems.add_at(option.where, Opt{option.key}, ' ', join(option.words, " "),
                              " contradicts parallel_mode 0 (data parallel); give parallel_mode 1");
  }

  void batch() {
    constexpr const char* kWanted = "a number of micro-batches from 1";
    int64_t product = 1;
    const FileOption* first = nullptr;
    for (const char* path : {"parallel_config.micro_batch_num", "micro_batch_interleave_num",
                             "runner_config.gradient_accumulation_steps"}) {
      const FileOption* option = key(path);
      if (!option) continue;
      const auto value = whole(path, 1, kWanted);
      if (!value) return;
      if (__builtin_mul_overflow(product, *value, &product)) return refuse(*option, kWanted);
      if (!first) first = option;
    }
    if (first) put("gradient-accumulation-steps", *first, {std::to_string(product)});
    // Its batch size overrides the data set's.
    const bool runner = key("runner_config.batch_size") != nullptr;
    if (runner && key("train_dataset.batch_size")) name("train_dataset.batch_size");
    put("micro-batch-size", runner ? "runner_config.batch_size" : "train_dataset.batch_size");
  }

  void steps() {
    const FileOption* const given = key("lr_schedule.total_steps");
    const auto total = is(given, "-1") ? std::nullopt
                                       : whole("lr_schedule.total_steps", 1,
                                               "a number of steps, or -1 for those of runner_config.epochs");
    if (total) {
      put("train-iters", "lr_schedule.total_steps");
      if (key("runner_config.epochs")) name("runner_config.epochs");
    } else {
      put("num-epochs", "runner_config.epochs");
    }
    const FileOption* const interval = key("eval_step_interval");
    const bool never = interval && parse_int(interval->words[0]).value_or(1) < 1;
    if (never) {
      log(interval->where, ": eval_step_interval ", interval->words[0], ": no evaluation");
      no_evaluation(*interval);
    } else {
      put("eval-interval", "eval_step_interval");
    }
    if (flag("do_eval") == false) no_evaluation(*key("do_eval"));
  }
  void no_evaluation(const FileOption& why) {
    tunes_ ? put("do-eval", why, {"false"}) : put("eval-iters", why, {"0"});
  }

  /// The layers of --target-modules for MindFormers' names of layers, which its files give as the ends of
  /// regular expressions: '.*wq|.*wv', '.*dense1$|.*dense3$'.
  void adapters() {
    if (!tunes_) return;
    for (const std::string path :
         {"pet_config.target_modules", "model.model_config.pet_config.target_modules"})
      if (const FileOption* modules = key(path)) put("target-modules", *modules, layers_of(*modules));
  }
  std::vector<std::string> layers_of(const FileOption& modules) {
    static const std::map<std::string, std::string> kLayers = {
        {"wq", "q_proj"},     {"wk", "k_proj"},    {"wv", "v_proj"},  {"wo", "o_proj"},
        {"w1", "gate_proj"},  {"w2", "down_proj"}, {"w3", "up_proj"}, {"dense1", "c_attn"},
        {"dense2", "c_attn"}, {"dense3", "c_attn"}};
    std::set<std::string> layers;
    for (const std::string& words : modules.words)
      for (std::string name : split(words, '|')) {
        std::erase_if(name, [](char c) { return c == '.' || c == '*' || c == '$'; });
        const auto layer = kLayers.find(name);
        if (layer == kLayers.end()) {
          refuse(modules, "wq, wk, wv, wo, w1, w2 and w3, or dense1, dense2 and dense3, with | between");
          return {};
        }
        layers.insert(layer->second);
      }
    if (layers.contains("c_attn"))
      log(modules.where, ": queries, keys and values of GPT-2 are one layer, with one adapter");
    return {layers.begin(), layers.end()};
  }

  /// MFLossMonitor prints each step, unless its key per_print_times says otherwise.
  void logging(const std::vector<FileOption>& read) {
    put("log-interval", "callbacks.per_print_times");
    const auto is_own = [](const FileOption& option) { return option_key(option.key) == "log-interval"; };
    if (std::any_of(read.begin(), read.end(), is_own)) return;
    for (const FileOption& option : read)
      if (option.path() == "callbacks.type" && is(&option, "MFLossMonitor") && !made("log-interval"))
        put("log-interval", option, {"1"});
  }

  void schedule() {
    put("lr", key("lr_schedule.learning_rate") ? "lr_schedule.learning_rate" : "optimizer.learning_rate");
    if (const FileOption* betas = key("optimizer.betas"); betas && betas->words.size() == 2) {
      put("adam-beta1", *betas, {betas->words[0]});
      put("adam-beta2", *betas, {betas->words[1]});
    }
    if (flag("runner_wrapper.use_clip_grad") == false)
      put("clip-grad", *key("runner_wrapper.use_clip_grad"), {"0"});
    const FileOption* const type = key("lr_schedule.type");
    if (!type) return;
    const std::string course = lower_ascii(type->words[0]);
    for (const auto& [word, style] : {std::pair{"cosine", "cosine"},
                                      {"linear", "linear"},
                                      {"polynomial", "linear"},  // linear, because the power is 1
                                      {"constant", "constant"}})
      if (course.starts_with(word)) return put("lr-decay-style", *type, {style});
    if (trains_)
      file_.problems.add_at(type->where, "lr_schedule.type is ", quote(type->words[0]),
                            ", wanted one of Cosine, Linear, Constant or polynomial, with warm-up");
  }

  void precision() {
    const FileOption* const type = key("model.model_config.compute_dtype");
    if (!type) return;
    const std::string dtype = lower_ascii(join(type->words, " "));
    if (dtype == "float32" || dtype == "fp32") return;
    if (dtype == "bfloat16" || dtype == "bf16") return put("bf16", *type, {"true"});
    if (dtype != "float16" && dtype != "fp16") {
      if (!trains_) return name(type->path());
      return refuse(*type, "float32, float16 or bfloat16");
    }
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
    if (const FileOption* act = key("model.model_config.hidden_act"))
      activation(*act, is(type, "LlamaConfig"));
  }

  /// LLaMA's feed-forward block is gated by SiLU; GPT-2's may have any function that has a name of
  /// MindFormers in config/activations.h.
  void activation(const FileOption& act, bool gated) {
    const auto function = mindformers_activation(act.words[0]);
    if (gated ? function == ActivationFunction::kSilu : function.has_value()) {
      if (!gated) put("hidden-act", act, {hf_name(*function)});
    } else if (trains_) {
      refuse(act, gated ? "silu, which gates LLaMA's feed-forward block" : "gelu, fast_gelu, silu or relu");
    } else {
      name(act.path());
    }
  }

  const FileOption* made(const std::string& option) const {
    for (const FileOption& one : file_.options)
      if (one.key == option && !one.is_empty()) return &one;
    return nullptr;
  }
  std::optional<int64_t> made_number(const std::string& option) const {
    const FileOption* const one = made(option);
    return one ? parse_int(one->words[0]) : std::nullopt;
  }

  void widen(const FileOption& ratio) {
    const auto hidden = made_number("hidden-size");
    const auto factor =
        whole("model.model_config.expand_ratio", 1, "a whole number, by which hidden_size is multiplied");
    int64_t width = 0;
    if (!factor) return;
    if (hidden && !__builtin_mul_overflow(*factor, *hidden, &width))
      put("ffn-hidden-size", ratio, {std::to_string(width)});
    else if (trains_ && !tunes_)
      refuse(ratio, "a model.model_config.hidden_size next to it, which it multiplies");
    else
      name(ratio.path());
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
    // LLaMA's rule for the width: two thirds of 4 * hidden, times a factor, rounded up to a multiple.
    const FileOption* const factor = key("model.model_config.ffn_dim_multiplier");
    const double wider = factor ? parse_double(factor->words[0]).value_or(0) : 1;
    if (!(wider > 0 && wider <= 1024)) return refuse(*factor, "a number above 0, up to 1024");
    const int64_t multiple =
        key("model.model_config.multiple_of")
            ? whole("model.model_config.multiple_of", 1, "a number of features from 1").value_or(1)
            : 256;
    const int64_t two_thirds = int64_t{2} * 4 * *hidden / 3;
    const auto width = static_cast<int64_t>(wider * static_cast<double>(two_thirds));
    put("ffn-hidden-size", type, {std::to_string((width + multiple - 1) / multiple * multiple)});
  }

  /// Translates the keys that say where weights come from. Without resume_training, a run starts from these
  /// weights at step 0.
  void loading() {
    const FileOption* from = key("load_checkpoint");
    if (!from) from = key("model.model_config.checkpoint_name_or_path");
    if (!from) return;
    if (!trains_ || tunes_) return put("model", *from);
    put("load", *from);
    put("exit-on-missing-checkpoint", *from, {"true"});
    if (!flag("resume_training").value_or(false)) put("finetune", *from, {"true"});
  }

  void memory() {
    const FileOption* const most = key("context.max_device_memory");
    if (!most) return;
    const std::string& word = most->words[0];
    const std::string amount = lower_ascii(word).ends_with("gb") ? word.substr(0, word.size() - 2) : word;
    if (parse_double(trim(amount)).value_or(0) > 0)
      put("device-memory-gb", *most, {std::string(trim(amount))});
    else
      file_.problems.add_at(most->where, "context.max_device_memory is ", quote(word),
                            ", wanted gigabytes, such as \"31GB\" or 0.5GB");
  }

  void device() {
    memory();
    const FileOption* const target = key("context.device_target");
    if (!target) return;
    if (!is(target, "CPU") && !is(target, "GPU") && !is(target, "Ascend")) {
      file_.problems.add_at(target->where, "device_target is ", quote(target->words[0]),
                            ", wanted CPU, GPU or Ascend");
      return;
    }
    if (!made("device")) put("device", *target, {is(target, "CPU") ? "cpu" : "gpu"});
  }

  FileTranslation& file_;
  const bool trains_;                       // the app trains, or plans a run; false: it generates
  const bool tunes_;                        // the app trains a model, whose shape is given, on records
  const bool plans_;                        // the app finds layouts
  bool alone_ = false;                      // whether use_parallel is False
  std::vector<std::string> named_;          // groups and keys without effect here
  mutable std::set<std::string> obeyed_;    // paths of the keys with an effect
  std::map<std::string, std::string> put_;  // our options that replace keys, with the place of each key
  std::map<std::string, FileOption> keys_;  // the keys with KeyUse::kCombined; of each name, the first one
};

}  // namespace

bool is_of_mindformers(const FileTranslation& file) {
  return std::any_of(file.options.begin(), file.options.end(), [](const FileOption& option) {
    return option.path().starts_with("model.model_config.") || option.path().starts_with("runner_config.");
  });
}

void translate_mindformers(FileTranslation& file) {
  Translator(file).run();
}

void MindFormersRun::validate(Problems& problems) const {
  if (mode && *mode != "train" && *mode != "finetune")
    problems.add("run_mode is ", quote(*mode), "; this program does train, megalith-generate predict; give ",
                 Opt{"run-mode"}, " train to train anyway");
}

}  // namespace megalith
