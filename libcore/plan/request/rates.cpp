#include "libcore/plan/request/rates.h"

#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/machine/proc.h"
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

/// A file of --calibrate, with its text, or that of --anchor.
struct RateFile {
  enum Kind { kProfile, kLinks, kRun } kind;
  std::string path, text;
};

RateFile::Kind kind_of(const std::string& text, const std::string& path) {
  if (is_device_profile(text)) return RateFile::kProfile;
  if (is_link_log(text)) return RateFile::kLinks;
  if (is_run_log(text)) return RateFile::kRun;
  fail(ErrorKind::kData, path,
       ": neither a profile (megalith-autoplan profile), an output of nccl-tests (no column \"busbw\") "
       "nor a training log of Megatron-LM (no \"elapsed time per iteration (ms):\")");
}

std::vector<std::string> paths_of(const std::vector<RateFile>& files, RateFile::Kind kind) {
  std::vector<std::string> paths;
  for (const RateFile& file : files)
    if (file.kind == kind) paths.push_back(file.path);
  return paths;
}

/// The files that rates are taken from. Refuses a file of no kind, two profiles and two runs, before a
/// fit to one of them can be refused.
std::vector<RateFile> rate_files(const PlanOptions& plan) {
  std::vector<RateFile> files;
  if (!plan.anchor.empty()) files.push_back({RateFile::kRun, plan.anchor, {}});
  for (const std::string& path : plan.calibrations) {
    std::string text = read_file(path);
    const RateFile::Kind kind = kind_of(text, path);
    files.push_back({kind, path, std::move(text)});
  }
  if (const auto profiles = paths_of(files, RateFile::kProfile); profiles.size() > 1)
    fail(ErrorKind::kUsage, "--calibrate: ", profiles[0], " and ", profiles[1],
         " are both profiles; give one");
  if (const auto runs = paths_of(files, RateFile::kRun); runs.size() > 1)
    fail(ErrorKind::kUsage, "--calibrate, --anchor: ", join(runs, ", "),
         " are logs of several runs; give one");
  return files;
}

}  // namespace

DeviceRates rates_of(const PlanRequest& request) {
  const PlanCommand& command = request.command;
  const PlanOptions& plan = command.plan;
  const std::vector<RateFile> files = rate_files(plan);
  PlanProblem problem = request.problem;
  DeviceRates rates{fitted_coefficients(), problem.machine.device};
  Coefficients& own = rates.coefficients;
  problem.coefficients = &own;
  if (!plan.coefficients.empty()) own = read_coefficients(plan.coefficients, own);
  for (const RateFile& file : files) {
    if (file.kind == RateFile::kProfile) {
      rates = profiled_rates(command, problem, file.text, file.path);
      problem.machine.device = rates.device;
    } else if (file.kind == RateFile::kLinks) {
      own = with_links(parse_link_log(file.text, file.path), problem, file.path);
    }
  }
  // A run comes after the logs of links, since the rates of links are a part of a run's time.
  for (const std::string& path : paths_of(files, RateFile::kRun)) {
    const MegatronLog log = read_run_log(path);
    own = anchored(log, logged_run(log, problem, path));
  }
  return rates;
}

}  // namespace megalith
