#include "libcore/plan/request/plan_options.h"

#include "libcore/base/text.h"

namespace megalith {

namespace {

/// The names of the code bases that train adapters: "megalith, nemo".
std::string adapting() {
  std::vector<std::string> names;
  for (const CodeBase& one : code_bases())
    if (one.trains_adapters) names.emplace_back(one.name);
  return join(names, ", ");
}

void check_features(const std::vector<std::string>& features, Problems& problems) {
  std::vector<std::string> schedules;
  for (const std::string& word : features) {
    Software software;
    add_feature(software, word);
    if (software.schedule != Software{}.schedule) schedules.push_back(word);
  }
  if (schedules.size() > 1)
    problems.add(Opt{"software-features"}, ' ', join(schedules, " "),
                 ": a pipeline has one schedule; give one of them");
}

void check_tuning(const PlanOptions& plan, Problems& problems) {
  const PlannedTuning tuning = plan.tuning();
  if (plan.tuning_type == "full" && plan.lora_rank)
    problems.add(Opt{"finetuning-type"}, " full and ", Opt{"lora-rank"}, ' ', *plan.lora_rank,
                 " contradict each other; leave one of them out");
  if (plan.qlora && !tuning.adapts())
    problems.add(Opt{"qlora"}, " needs ", Opt{"lora-rank"}, " or ", Opt{"finetuning-type"}, " lora");
  if (tuning.adapts() && !plan.base().trains_adapters)
    problems.add(Opt{"software"}, ' ', plan.software, " trains no LoRA adapters; give one of ", adapting());
  if (tuning.eight_bits && (!plan.fp8_format.empty() || !plan.fp4_format.empty()))
    problems.add(Opt{"qlora"}, " widens the weights for products in 16 bits; leave it out, or ",
                 Opt{plan.fp4_format.empty() ? "fp8-format" : "fp4-format"});
  const auto excludes = [&](const char* option, bool given) {
    if (given && tuning.finetunes)
      problems.add(Opt{option}, " is for the training of new models; leave out ",
                   Opt{plan.tuning_type ? "finetuning-type" : "lora-rank"});
  };
  excludes("simulate", !plan.simulate.empty());
  excludes("verify-log", !plan.verify_log.empty());
  excludes("anchor", !plan.anchor.empty());
}

}  // namespace

PlannedTuning PlanOptions::tuning() const {
  constexpr int kUsualRank = 8;
  const bool adapts = tuning_type ? *tuning_type == "lora" : lora_rank.has_value();
  return {.finetunes = tuning_type || lora_rank,
          .lora_rank = adapts ? lora_rank.value_or(kUsualRank) : 0,
          .eight_bits = adapts && qlora};
}

void PlanOptions::validate(Problems& problems) const {
  check_features(features, problems);
  check_tuning(*this, problems);
  if (optimizer_instances > 1)
    problems.add(Opt{"num-distributed-optimizer-instances"}, ' ', optimizer_instances,
                 " is not planned; leave it out, or give ", Opt{"sharding"});
  if (overlap_parameters.value_or(false) && !overlap_gradients)
    problems.add("O1: ", Opt{"overlap-param-gather"}, " needs ", Opt{"overlap-grad-reduce"});
  if (budget && gpu_hour <= 0)
    problems.add(Opt{"budget"}, ' ', format_double(*budget), " needs ", Opt{"gpu-hour-price"});
  if (local() && !software.empty() && software != kMegalithSoftware)
    problems.add(Opt{"software"}, ' ', software, ": only ", kMegalithSoftware,
                 " is planned for this machine's processor; leave it out, or give another ", Opt{"gpu"});
  if (local() && !features.empty())
    problems.add(Opt{"software-features"},
                 " is not planned for this machine's processor; leave it out, or give another ", Opt{"gpu"});
  if (!fp8_recipe.empty() && fp8_format.empty())
    problems.add(Opt{"fp8-recipe"}, ' ', fp8_recipe, " needs ", Opt{"fp8-format"});
}

template std::vector<Field> fields_of<PlanOptions>(PlanOptions&);

}  // namespace megalith
