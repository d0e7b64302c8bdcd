#include "libcore/plan/request/run_words.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "libcore/base/shell_word.h"
#include "libcore/base/text.h"
#include "libcore/data/samples/budgets.h"
#include "libcore/finetune/finetune_config.h"

namespace megalith {
namespace {

/// Options that a plan decides or writes itself.
constexpr std::string_view kPlanned =
    "micro-batch-size global-batch-size gradient-accumulation-steps rampup-batch-size "
    "step-batch-size-schedule fp16 bf16 recompute-activations recompute trace recompute-method "
    "recompute-granularity recompute-num-layers";

/// Options of how ranks work together that a plan does not decide.
constexpr std::string_view kOfRanks =
    "ddp-bucket-size ddp-num-buckets deterministic-collectives distributed-timeout-minutes "
    "distributed-timeout-seconds-after-init";

/// The other options that megatron/training/arguments.py has under the same name.
constexpr std::string_view kMegatron =
    "adam-beta1 adam-beta2 adam-eps async-save clip-grad data-args-path data-cache-path data-path "
    "dataloader-type ddp-bucket-size ddp-num-buckets distributed-timeout-minutes "
    "distributed-timeout-seconds-after-init "
    "eod-mask-loss eval-interval eval-iters exit-duration-in-mins exit-interval "
    "exit-on-missing-checkpoint exit-signal-handler fim-data fim-eod-token fim-fragment-rate "
    "fim-middle-token fim-no-prefix fim-pad-token fim-prefix-token fim-rate fim-split-sample "
    "fim-spm-rate fim-suffix-token finetune full-validation hysteresis initial-loss-scale load "
    "load-optim load-rng log-interval log-straggler log-throughput loss-scale loss-scale-window lr "
    "lr-decay-iters lr-decay-samples lr-decay-style lr-warmup-fraction lr-warmup-init "
    "lr-warmup-iters lr-warmup-samples lr-wsd-decay-iters lr-wsd-decay-samples lr-wsd-decay-style "
    "merge-file min-loss-scale min-lr mock-data multiple-validation-sets optimizer "
    "override-opt_param-scheduler per-split-data-args-path reset-attention-mask reset-position-ids "
    "save save-interval save-retain-interval save-optim seed split tensorboard-dir test-data-path "
    "tiktoken-num-special-tokens tiktoken-pattern tokenizer-model tokenizer-type train-data-path "
    "train-iters train-samples use-checkpoint-args use-checkpoint-opt_param-scheduler "
    "valid-data-path validation-set-names vocab-file weight-decay";
/// Flags that Megatron has only as --no-NAME; it has all other flags only as --NAME.
constexpr std::string_view kMegatronsNegatives = "load-optim load-rng save-optim";

/// Whether `name` is one of `names`, which are separated by blanks.
bool among(std::string_view name, std::string_view names) {
  const std::vector<std::string> all = split(names, ' ');
  return std::find(all.begin(), all.end(), name) != all.end();
}

/// The name of an option without dashes and "no-": load-optim for "--no-load-optim".
std::string_view name_of(std::string_view option) {
  option.remove_prefix(2);
  if (option.starts_with("no-")) option.remove_prefix(3);
  return option;
}

/// Whether Megatron has this spelling of a flag.
bool has_flag(std::string_view option) {
  return option.starts_with("--no-") == among(name_of(option), kMegatronsNegatives);
}

/// Whether the words are a data path with budgets, which Megatron would read as prefixes.
bool has_budgets(const std::vector<std::string>& words) {
  return words.front().ends_with("data-path") &&
         std::any_of(words.begin() + 1, words.end(),
                     [](const std::string& word) { return parse_budget(word).has_value(); });
}

/// Adds an option with its values. `tunes`: megalith-finetune has the options of its group, too.
void add_words(const std::vector<std::string>& words, bool tunes, RunWords& out) {
  const std::string_view name = name_of(words.front());
  if (among(name, kPlanned)) return;
  std::string line;
  for (const std::string& word : words) line += ' ' + shell_word(word);
  out.ours += line;
  if (tunes && !only_for_pretraining(name)) out.tuning += line;
  const bool spelled = words.size() > 1 ? !has_budgets(words) : has_flag(words.front());
  if (among(name, kMegatron) && spelled) out.megatron += line;
}

}  // namespace

RunWords run_words(const Options& given) {
  RunWords out;
  // The programs add these groups in different orders, and those that train call the third "Checkpoints".
  for (const std::string group : {"Training", "Data", "Checkpoint", "Checkpoints", "Tokenizer"})
    for (const auto& words : given.given_words({group})) add_words(words, group != "Data", out);
  for (const auto& words : given.given_words({"Parallelism"}))
    if (among(name_of(words.front()), kOfRanks)) add_words(words, true, out);
  return out;
}

}  // namespace megalith
