#include "libcore/plan/report/plan_answer.h"

#include <algorithm>

#include "libcore/base/text.h"
#include "libcore/plan/launch/launch.h"
#include "libcore/plan/launch/launch_options.h"
#include "libcore/plan/price/code_base.h"
#include "libcore/plan/report/plan_words.h"

namespace megalith {
namespace {

/// The devices per machine: "8". If links join a different number of devices, also that number: "4 a machine,
/// 72".
std::string joined_text(const Machine& machine) {
  const int joined = std::min(machine.domain(), machine.world);
  return joined == machine.local_world ? std::to_string(joined)
                                       : concat(machine.local_world, " a machine, ", joined);
}

/// "tensor 8, pipeline 8 (layers 6 in 6 chunks), sequence parallel; micro-batch 2, global batch 16". Sizes of
/// 1 are left out.
std::string layout_text(const PlanProblem& p, const Candidate& c) {
  std::vector<std::string> words;
  const auto divided = [&](const char* name, int size) {
    if (size > 1) words.push_back(concat(name, ' ', size));
  };
  divided("tensor", c.tensor);
  if (c.pipeline > 1)
    words.push_back(concat("pipeline ", c.pipeline, " (layers ", layers_text(p, c),
                           c.chunks > 1 ? concat(" in ", c.chunks, " chunks") : "", ')'));
  divided("context", c.context);
  if (p.model.has_experts()) {
    divided("expert", c.expert);
    divided("expert tensor", c.expert_tensor);
  }
  divided("data", c.data);
  if (words.empty()) words.push_back("one device");
  if (c.sequence) words.push_back("sequence parallel");
  if (c.sharding != Sharding::kNone) words.push_back(concat("ZeRO-", static_cast<int>(c.sharding)));
  if (c.recompute != Recomputed::kNone) words.push_back("recomputed: " + recompute_text(c));
  return concat(join(words, ", "), "; micro-batch ", c.micro_batch, ", global batch ", c.global_batch);
}

std::string memory_text(const PlanProblem& p, const Plan& plan) {
  const double needed = plan.memory.estimate.needed();
  return concat(gigabytes(needed), " of ", gigabytes(p.machine.device.memory), " GB",
                plan.candidate.pipeline > 1 ? concat(" on stage ", plan.memory.stage) : "", "; ",
                format_fixed(100 * fit_probability(p, needed), 1), " % certain to fit");
}

/// A line about what the data take of a node's memory; empty if that is not known.
std::string order_line(const Report& r) {
  if (!r.order) return {};
  return concat("data    the order of samples takes ", gigabytes(static_cast<double>(r.order->bytes)), " GB ",
                r.order->in_files ? "of files that a node's ranks map" : "of the machine's memory", '\n');
}

std::string time_text(const PlanProblem& p, const Plan& plan) {
  const double seconds = plan.time.total();
  const Interval range = step_interval(p, plan.candidate, seconds);
  return concat(seconds_text(seconds), " a step (four of five runs: ", seconds_text(range.low), " to ",
                seconds_text(range.high), "), ",
                format_count(static_cast<int64_t>(plan.tokens_per_second(p))), " tokens/s, ",
                format_fixed(100 * model_flops_utilisation(p, plan.candidate, seconds), 1), " % MFU");
}

std::string trainer_text(const PlanProblem& p, const TrainerAnswer& trainer) {
  const bool tunes = p.tuning.finetunes;
  if (trainer.refusal.empty() && trainer.rank)
    return concat(tunes ? "megalith-finetune" : "megalith-pretrain", " runs plan 1 and takes ",
                  gigabytes(trainer.rank->estimate.needed()), " GB on its fullest rank",
                  trainer.options.empty() ? "" : concat(", with", trainer.options), '\n');
  if (takes_megatrons_options(p.software)) {
    const std::string lacks = tunes ? std::string() : megatron_lacks(p);
    return concat(megatron_trains(p) ? "plan 1 is for Megatron-LM only: " : "no line is written for plan 1: ",
                  trainer.refusal, lacks.empty() ? "" : concat("; Megatron-LM has no ", lacks), '\n');
  }
  return concat("plan 1 is for ", code_base(p.software.code_base).what, " (", p.software.code_base,
                "): its lines are not written here\n");
}

/// The line that starts the plan with the program that runs it; nothing for one whose lines are not written.
std::string command_text(const Report& r) {
  const PlanProblem& p = r.problem;
  const Candidate& c = r.result.plans.front().candidate;
  const bool ours = r.trainer.front().refusal.empty();
  if (!ours && !megatron_trains(p)) return {};
  const bool direct = ours && p.machine.world <= p.machine.local_world;
  return concat("  ", direct ? direct_line(p, c) : launch_line(p, c, Launcher::kTorchrun, ours), '\n');
}

}  // namespace

std::string plan_subject(const Report& r) {
  const PlanProblem& p = r.problem;
  return concat(parameters_text(p.model), " on ", p.machine.world, " x ", p.machine.device.name, " (",
                gigabytes(p.machine.device.memory), " GB each, ", joined_text(p.machine),
                " joined by links), ", precision_text(p), ", ", tuning_text(p), p.software.code_base, '\n');
}

std::string plan_answer(const Report& r) {
  const PlanProblem& p = r.problem;
  const Plan& best = r.result.plans.front();
  return concat("layout  ", layout_text(p, best.candidate), "\nmemory  ", memory_text(p, best), '\n',
                order_line(r), "time    ", time_text(p, best), "\nlimit   ", bottleneck(p, best),
                "\n\noptions of plan 1\n  ", launch_options(p, best.candidate), '\n',
                trainer_text(p, r.trainer.front()), command_text(r));
}

}  // namespace megalith
