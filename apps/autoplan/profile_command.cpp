#include "apps/autoplan/profile_command.h"

#include <algorithm>
#include <iostream>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/config/thread_limit.h"
#include "libcore/io/files/file.h"
#include "libcore/io/run/run_files.h"
#include "libcore/plan/profile/device_probe.h"
#include "libcore/plan/profile/profile_quality.h"

namespace megalith {
namespace {

/// Refuses options for planning, which would have no effect on a profile.
void refuse_of_planning(const Options& options) {
  constexpr std::string_view kOwn[] = {"command", "seconds", "output", "device",  "threads",
                                       "bf16",    "fp16",    "gpu",    "gpu-file"};
  const Json all = options.to_json();
  for (const auto& [key, value] : all.as_object()) {
    const std::string name = option_key(key);
    if (options.given(name) && std::find(std::begin(kOwn), std::end(kOwn), name) == std::end(kOwn))
      fail(ErrorKind::kUsage, "--", name, " is for planning and does not affect a profile; leave it out");
  }
}

void check_processor(const PlanCommand& plan, const Options& options) {
  if (options.given("gpu") && plan.plan.gpu != "local")
    fail(ErrorKind::kUsage, "--gpu ", plan.plan.gpu, ": a processor is measured; give --device cuda");
  if (!plan.plan.gpu_files.empty())
    fail(ErrorKind::kUsage, "--gpu-file ", plan.plan.gpu_files.front(),
         " is for --device cuda and --gpu NAME; a processor is measured, leave it out");
}

/// Refuses a device other than cuda, and a GPU's profile without the GPU's name or a 16-bit type: plans for a
/// GPU compute in 16 bits, so a profile in fp32 would be rejected, but only after a minute of measuring.
void check_gpu(const PlanCommand& plan, const Options& options) {
  if (plan.train.device != "cuda")
    fail(ErrorKind::kUsage, "--device ", plan.train.device,
         ": a profile describes one device; give cpu, or cuda with --gpu NAME");
  if (!options.given("gpu") || plan.plan.gpu == "local")
    fail(ErrorKind::kUsage,
         "--device cuda needs --gpu NAME, the kind of device, by which plans recognize it");
  if (!plan.train.bf16 && !plan.train.fp16)
    fail(ErrorKind::kUsage,
         "--device cuda needs --bf16 or --fp16, the type in which the plans for this "
         "profile compute; no plan for a GPU uses fp32");
}

ProfileRequest request_of(const ProfileCommand& command, const PlanCommand& plan, const Options& options) {
  if (plan.train.bf16 && plan.train.fp16)
    fail(ErrorKind::kUsage, "--fp16 and --bf16 exclude each other; give one of them");
  ProfileRequest request{.device = kLocalDevice,
                         .backend = plan.train.device,
                         .dtype = plan.train.bf16   ? DType::kBf16
                                  : plan.train.fp16 ? DType::kF16
                                                    : DType::kF32,
                         .threads = plan.train.threads,
                         .seconds = command.seconds.value_or(60)};
  if (request.backend == "cpu") {
    check_processor(plan, options);
    return request;
  }
  check_gpu(plan, options);
  AcceleratorList list = AcceleratorList::installed();
  for (const std::string& file : plan.plan.gpu_files) list.add_file(file);
  request.device = list.find(plan.plan.gpu).name;
  return request;
}

/// Checks the output before the measuring, which takes a minute.
void prepare_output(const std::string& output, const PlanCommand& plan, const Options& options) {
  if (output.empty()) return;
  RunFiles files;
  files.reads("--config", options.config_file());
  files.reads("--gpu-file", plan.plan.gpu_files);
  files.writes("--output", output, OutputKind::kStream);
  files.check();
  make_directories(parent_or_here(output));
}

}  // namespace

void ProfileCommand::refuse_alone() const {
  Problems problems;
  if (seconds) problems.add(Opt{"seconds"}, ' ', *seconds, " is for megalith-autoplan profile");
  if (!output.empty()) problems.add(Opt{"output"}, ' ', output, " is for megalith-autoplan profile");
  problems.throw_if_any();
}

void run_profile(const ProfileCommand& command, const PlanCommand& plan, const Options& options) {
  refuse_of_planning(options);
  Problems problems;
  require_possible_threads(plan.train.threads, "threads", problems);
  problems.throw_if_any();
  const ProfileRequest request = request_of(command, plan, options);
  prepare_output(command.output, plan, options);
  const DeviceProfile profile = profile_device(request);
  if (const std::string why = unsteadiness(profile); !why.empty()) warn(why);
  const std::string text = to_json(profile).dump(1) + '\n';
  if (command.output.empty()) {
    std::cout << text;
    return;
  }
  write_file(command.output, text, OutputKind::kStream);
  log("wrote ", command.output, ": ", profile.points.size(), " of ", profile.grid, " points of ",
      profile.device, " in ", format_duration(profile.seconds));
}

}  // namespace megalith
