#include "libcore/plan/request/outputs.h"

#include <iterator>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/run/run_files.h"

namespace megalith {
namespace {

/// An output that a command with ranked plans may request, and whether other modes also produce it.
struct Output {
  const char* option;
  bool (*asked)(const PlanCommand&);
  bool by_log = false, by_simulation = false, by_job = false;
};

constexpr Output kOutputs[] = {
    {.option = "--json",
     .asked = [](const PlanCommand& c) { return c.plan.json; },
     .by_log = true,
     .by_simulation = true},
    {.option = "--html", .asked = [](const PlanCommand& c) { return !c.plan.html.empty(); }, .by_job = true},
    {.option = "--trace",
     .asked = [](const PlanCommand& c) { return !c.train.trace.empty(); },
     .by_job = true},
    {.option = "--explain", .asked = [](const PlanCommand& c) { return c.plan.explain; }},
    {.option = "--train-tokens",
     .asked = [](const PlanCommand& c) { return c.plan.train_tokens.has_value(); }},
    {.option = "--deadline-days",
     .asked = [](const PlanCommand& c) { return c.plan.deadline_days.has_value(); }},
    {.option = "--budget", .asked = [](const PlanCommand& c) { return c.plan.budget.has_value(); }},
    {.option = "--emit", .asked = [](const PlanCommand& c) { return c.plan.emit != JobKind::kNone; }},
    {.option = "--simulate", .asked = [](const PlanCommand& c) { return !c.plan.simulate.empty(); }},
};

/// Refuses requested outputs that a mode does not produce. `mode` names the mode in the message; `made` is
/// its member of Output.
void refuse_others(const PlanCommand& command, const std::string& mode, bool Output::*made) {
  std::string others;
  for (const Output& output : kOutputs)
    if (!(output.*made) && output.asked(command) && !mode.starts_with(output.option))
      others += concat(others.empty() ? "" : ", ", output.option);
  if (!others.empty()) fail(ErrorKind::kUsage, mode, " in place of plans; leave out ", others);
}

/// Throws kUsage when an output is an input, the other output, or not a file.
void check_files(const PlanCommand& command) {
  const PlanOptions& plan = command.plan;
  RunFiles files;
  files.reads("--config", command.given.config_file);
  files.reads("--cluster", plan.cluster);
  files.reads("--gpu-file", plan.gpu_files);
  files.reads("--hf", plan.hf);
  files.reads("--coefficients", plan.coefficients);
  files.reads("--verify-log", plan.verify_log);
  files.reads("--anchor", plan.anchor);
  files.reads("--calibrate", plan.calibrations);
  files.writes("--html", plan.html, OutputKind::kStream);
  files.writes("--trace", command.train.trace, OutputKind::kStream);
  files.check();
}

}  // namespace

void check_outputs(const PlanCommand& command) {
  const PlanOptions& plan = command.plan;
  if (!plan.verify_log.empty())
    refuse_others(command, "--verify-log " + plan.verify_log + " prints a comparison", &Output::by_log);
  else if (!plan.simulate.empty())
    refuse_others(command, "--simulate " + plan.simulate + " prints steps", &Output::by_simulation);
  else if (plan.emit != JobKind::kNone)
    refuse_others(command, concat("--emit ", enum_name(plan.emit), " prints a job"), &Output::by_job);
  check_files(command);
}

}  // namespace megalith
