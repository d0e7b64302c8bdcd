#include "libcore/plan/request/rates.h"

#include "libcore/base/error.h"
#include "libcore/base/process.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/plan/log/link_log.h"
#include "libcore/plan/log/run_log.h"
#include "libcore/plan/price/kernel_rates.h"
#include "libcore/plan/profile/calibrate.h"

namespace megalith {
namespace {

/// The precision of the plan, as a profile spells it.
std::string dtype_of(const PlanProblem& p, const std::string& path) {
  if (p.precision == Precision::kFloat32) return "fp32";
  if (p.precision != Precision::kHalf)
    fail(ErrorKind::kUsage, "--calibrate ", path,
         ": plans in 8 or 4 bits take no profile; leave it out, or --fp8-format and --fp4-format");
  return p.fp16 ? "fp16" : "bf16";
}

/// The rates calibrated by a profile. A profile measures the whole device; the result is one rank's share.
DeviceRates profiled_rates(const PlanCommand& command, PlanProblem p, const std::string& text,
                           const std::string& path) {
  const int threads = command.train.threads, ranks = p.machine.local_world;
  set_local_world(p.machine, 1);
  const CalibrationTarget target{.before = {*p.coefficients, p.machine.device},
                                 .local = command.plan.local(),
                                 .dtype = dtype_of(p, path),
                                 .threads = threads > 0 ? threads : usable_cpus(),
                                 .attention = flash_coefficient(p.software.attention)};
  DeviceRates rates = calibrated(parse_device_profile(text, path), target, point_pricer(p), path);
  p.machine.device = rates.device;
  set_local_world(p.machine, ranks);
  rates.device = p.machine.device;
  return rates;
}

}  // namespace

DeviceRates rates_of(const PlanRequest& request) {
  const PlanCommand& command = request.command;
  const PlanOptions& plan = command.plan;
  PlanProblem problem = request.problem;
  DeviceRates rates{fitted_coefficients(), problem.machine.device};
  Coefficients& own = rates.coefficients;
  problem.coefficients = &own;
  if (!plan.coefficients.empty()) own = read_coefficients(plan.coefficients, own);
  std::vector<std::string> runs = plan.anchor.empty() ? std::vector<std::string>{} : std::vector{plan.anchor};
  std::string profiled;
  for (const std::string& path : plan.calibrations) {
    const std::string text = read_file(path);
    if (is_device_profile(text)) {
      if (!profiled.empty())
        fail(ErrorKind::kUsage, "--calibrate: ", profiled, " and ", path, " are both profiles; give one");
      profiled = path;
      rates = profiled_rates(command, problem, text, path);
      problem.machine.device = rates.device;
    } else if (is_link_log(text))
      own = with_links(parse_link_log(text, path), problem, path);
    else if (is_run_log(text))
      runs.push_back(path);
    else
      fail(ErrorKind::kData, path,
           ": neither a profile (megalith-autoplan profile), an output of nccl-tests (no column \"busbw\") "
           "nor a training log of Megatron-LM (no \"elapsed time per iteration (ms):\")");
  }
  if (runs.size() > 1)
    fail(ErrorKind::kUsage, "--calibrate, --anchor: ", join(runs, ", "),
         " are logs of several runs; give one");
  // Runs come after the logs of links, since the rates of links are a part of a run's time.
  for (const std::string& path : runs) {
    const MegatronLog log = read_run_log(path);
    own = anchored(log, logged_run(log, problem, path));
  }
  return rates;
}

}  // namespace megalith
