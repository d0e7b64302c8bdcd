#include "libcore/plan/report/plan_json.h"

#include "libcore/base/text.h"
#include "libcore/plan/launch/launch.h"
#include "libcore/plan/launch/launch_options.h"
#include "libcore/plan/price/code_base.h"
#include "libcore/plan/report/plan_words.h"

namespace megalith {
namespace {

void append(Json::Object& object, Json::Object members) {
  for (Json::Member& member : members) object.push_back(std::move(member));
}

/// The results of `make` for the elements of `list`.
Json::Array array_of(const auto& list, const auto& make) {
  Json::Array out;
  for (const auto& one : list) out.push_back(make(one));
  return out;
}

Json::Array ends_of(double low, double high) {
  return {figure(low), figure(high)};
}

Json memory_object(const MemoryEstimate& estimate) {
  Json::Object out;
  for (const EstimateColumn& column : estimate_columns(kMemoryParts))
    out.emplace_back(column.name, figure(column.value(estimate)));
  return out;
}

Json time_object(const StepTime& time) {
  Json::Object out;
  for (const TimeColumn& column : time_columns()) out.emplace_back(column.name, figure(time.*column.value));
  return out;
}

Json::Object expert_members(const PlanProblem& p, const Candidate& c) {
  const TokenImbalance load = p.model.rank_imbalance(c.expert);
  const Interval ends = imbalance_interval(p, c);
  return {{"expert", c.expert},
          {"expert_tensor", c.expert_tensor},
          {"expert_data", c.expert_data()},
          {"token_imbalance", ends_of(load.low, load.high)},
          {"step_seconds_of_imbalance", ends_of(ends.low, ends.high)}};
}

/// How plan 1 is started: with Megatron-LM's program and, if our trainer runs the plan, with ours.
Json launch_object(const Report& r) {
  Json::Object out;
  for (const bool ours : {false, true}) {
    if (ours ? !r.trainer.front().refusal.empty() : !megatron_trains(r.problem)) continue;
    Json::Object lines;
    for (const auto& [name, launcher] : enum_names(Launcher{}))
      lines.emplace_back(name, launch_line(r.problem, r.result.plans.front().candidate, launcher, ours));
    out.emplace_back(ours ? "megalith" : "megatron", std::move(lines));
  }
  return out;
}

Json rejected_object(const SearchResult& found) {
  Json::Object out;
  for (const auto& [rule, count] : found.rejected)
    out.emplace_back(rule, Json::Object{{"families", count}, {"example", found.example.at(rule)}});
  return out;
}

Json sensitivity_object(const std::vector<Sensitivity>& sensitivities) {
  Json::Object out;
  for (const Sensitivity& s : sensitivities)
    out.emplace_back(s.what, Json::Object{{"step_seconds_10_less", figure(s.less)},
                                          {"step_seconds_10_more", figure(s.more)},
                                          {"fastest_plan_10_less", s.winner_less + 1},
                                          {"fastest_plan_10_more", s.winner_more + 1}});
  return out;
}

Json closest_object(const Report& r) {
  const Plan& plan = *r.result.closest;
  Json::Object out = plan_object(r.problem, plan);
  append(out, {{"lacking_bytes", figure(plan.memory.estimate.needed() - allowed_memory(r.problem))}});
  return out;
}

Json scale_object(const Report& r, const Scale& scale) {
  Json::Object out = {{"devices", scale.devices}, {"days", figure(scale.days)}};
  if (r.gpu_hour > 0) append(out, {{"cost", figure(scale.cost)}});
  append(out, {{"plan", plan_object(with_devices(r.problem, scale.devices), scale.plan)}});
  return out;
}

Json scaling_object(const Report& r) {
  const auto scaled = [&](const Scale& scale) { return scale_object(r, scale); };
  Json::Object out = {{"tokens", r.goal->tokens}, {"powers_of_two", array_of(r.scaling.powers, scaled)}};
  if (r.scaling.fewest) append(out, {{"fewest", scaled(*r.scaling.fewest)}});
  if (r.scaling.fastest) append(out, {{"soonest", scaled(*r.scaling.fastest)}});
  return out;
}

/// The limits that were found; null: there is no plan.
Json inverse_object(const Inverse& inverse) {
  const auto found = [](int limit) { return limit > 0 ? Json(limit) : Json(); };
  return Json::Object{{"least_devices", found(inverse.least_devices)},
                      {"longest_sequence", found(inverse.longest_sequence)},
                      {"most_layers", found(inverse.most_layers)}};
}

Json tuning_object(const PlanProblem& p) {
  const PlannedTuning& t = p.tuning;
  Json::Object out = {{"method", t.adapts() ? "lora" : "full"}};
  if (t.adapts())
    append(
        out,
        {{"rank", t.lora_rank}, {"eight_bits", t.eight_bits}, {"trained_parameters", adapters_of_model(p)}});
  return out;
}

Json ranked_object(const Report& r, size_t place) {
  Json::Object out = plan_object(r.problem, r.result.plans[place]);
  append(out, {{"megatron_only", megatron_trains(r.problem) && !r.trainer[place].refusal.empty()}});
  if (const auto& rank = r.trainer[place].rank)
    append(out, {{"trainer_bytes", static_cast<int64_t>(rank->estimate.needed())}});
  return out;
}

}  // namespace

Json figure(double value) {
  return parse_double(format_scientific(value, 8)).value_or(value);
}

Json::Object plan_object(const PlanProblem& p, const Plan& plan) {
  const Candidate& c = plan.candidate;
  Json::Array layers;
  for (int stage = 0; stage < c.pipeline; ++stage) layers.emplace_back(stage_layers(p, c, stage));
  const Interval range = step_interval(p, c, plan.time.total());
  Json::Object out = {
      {"tensor", c.tensor}, {"pipeline", c.pipeline}, {"context", c.context}, {"data", c.data}};
  if (p.model.has_experts()) append(out, expert_members(p, c));
  append(out, {{"chunks", c.chunks},
               {"stage_layers", std::move(layers)},
               {"micro_batch", c.micro_batch},
               {"global_batch", c.global_batch},
               {"sequence_parallel", c.sequence},
               {"zero_stage", static_cast<int>(c.sharding)},
               {"recompute", recompute_text(c)},
               {"memory_stage", plan.memory.stage},
               {"memory_bytes", memory_object(plan.memory.estimate)},
               {"fit_probability", figure(fit_probability(p, plan.memory.estimate.needed()))},
               {"step_seconds", figure(plan.time.total())},
               {"step_seconds_low", figure(range.low)},
               {"step_seconds_high", figure(range.high)},
               {"time_seconds", time_object(plan.time)},
               {"bottleneck", bottleneck(p, plan)},
               {"tokens_per_second", figure(plan.tokens_per_second(p))},
               {"mfu", figure(model_flops_utilisation(p, c, plan.time.total()))},
               {"options", launch_options(p, c)}});
  return out;
}

Json array_of_traffic(const std::vector<GroupTraffic>& traffic) {
  Json::Array groups;
  for (const GroupTraffic& one : traffic)
    groups.push_back(Json::Object{{"group", one.group}, {"calls", one.calls}, {"bytes", one.bytes}});
  return groups;
}

std::string plan_json(const Report& r) {
  const PlanProblem& p = r.problem;
  const SearchResult& found = r.result;
  const auto planned = [&](const Plan& plan) { return plan_object(p, plan); };
  Json::Object root = {{"parameters", total_parameters(p.model)}};
  if (p.model.has_experts()) append(root, {{"active_parameters", active_parameters(p.model)}});
  append(root, {{"device", p.machine.device.name},
                {"device_memory_bytes", p.machine.device.memory},
                {"devices", p.machine.world},
                {"precision", precision_text(p)}});
  if (p.tuning.finetunes) append(root, {{"tuning", tuning_object(p)}});
  append(root, {{"software", p.software.code_base},
                {"families", found.families},
                {"candidates", found.candidates},
                {"priced", found.priced}});
  if (found.fitting) append(root, {{"fitting", *found.fitting}});
  append(root, {{"rejected", rejected_object(found)}, {"sensitivity", sensitivity_object(r.sensitivities)}});
  if (found.closest) append(root, {{"closest", closest_object(r)}});
  if (found.missed) append(root, {{"missed", planned(*found.missed)}});
  if (r.remedy)
    append(root, {{"smallest_change", r.remedy->words}, {"smallest_change_options", r.remedy->options}});
  if (r.inverse) append(root, {{"inverse", inverse_object(*r.inverse)}});
  if (r.goal) append(root, {{"scaling", scaling_object(r)}});
  if (r.order)
    append(root, {{"node_order_bytes", static_cast<int64_t>(r.order->bytes)},
                  {"node_order_in_files", r.order->in_files}});
  if (!r.front.empty()) append(root, {{"front", array_of(r.front, planned)}});
  if (!found.plans.empty())
    append(root, {{"stage_memory_bytes",
                   array_of(stage_estimates(p, found.plans.front().candidate), memory_object)},
                  {"launch", launch_object(r)}});
  if (!found.plans.empty() && counts_traffic(r))
    append(root, {{"traffic", array_of_traffic(step_traffic(p, found.plans.front().candidate))}});
  Json::Array plans;
  for (size_t i = 0; i < found.plans.size(); ++i) plans.push_back(ranked_object(r, i));
  append(root, {{"plans", std::move(plans)}});
  return Json(std::move(root)).dump(2) + '\n';
}

}  // namespace megalith
