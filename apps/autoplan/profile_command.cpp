#include "apps/autoplan/profile_command.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/config/thread_limit.h"
#include "libcore/io/file.h"
#include "libcore/io/run_files.h"
#include "libcore/plan/profile/device_probe.h"

namespace megalith {
namespace {

/// An option of a plan would be read and change nothing.
void refuse_of_planning(const Options& options) {
  constexpr std::string_view kOwn[] = {"command", "seconds", "output", "device",  "threads",
                                       "bf16",    "fp16",    "gpu",    "gpu-file"};
  const Json all = options.to_json();
  for (const auto& [key, value] : all.as_object()) {
    const std::string name = option_key(key);
    if (options.given(name) && std::find(std::begin(kOwn), std::end(kOwn), name) == std::end(kOwn))
      fail(ErrorKind::kUsage, "--", name, " is for planning and changes no profile; leave it out");
  }
}

/// The planner's name of what is measured.
std::string measured_device(const PlanCommand& plan, const Options& options) {
  const bool named = options.given("gpu") && plan.plan.gpu != "local";
  if (plan.train.device == "cpu") {
    if (named)
      fail(ErrorKind::kUsage, "--gpu ", plan.plan.gpu, ": a processor is measured; give --device cuda");
    return kLocalDevice;
  }
  if (!named)
    fail(ErrorKind::kUsage, "--device ", plan.train.device,
         " needs --gpu NAME, the kind of device that it is, for plans to know it by");
  AcceleratorList list = AcceleratorList::installed();
  for (const std::string& file : plan.plan.gpu_files) list.add_file(file);
  return list.find(plan.plan.gpu).name;
}

/// Found before a minute of measuring.
void check_output(const std::string& output) {
  if (output.empty()) return;
  RunFiles files;
  files.writes("--output", output, OutputKind::kStream);
  files.check();
  const std::filesystem::path folder = parent_or_here(output);
  if (!std::filesystem::is_directory(folder))
    fail(ErrorKind::kNoInput, "--output ", output, ": ", folder.string(), " is no folder");
}

}  // namespace

void ProfileCommand::refuse_alone() const {
  Problems problems;
  if (seconds) problems.add("--seconds ", *seconds, " is for megalith-autoplan profile");
  if (!output.empty()) problems.add("--output ", output, " is for megalith-autoplan profile");
  problems.throw_if_any();
}

void run_profile(const ProfileCommand& command, const PlanCommand& plan, const Options& options) {
  refuse_of_planning(options);
  if (plan.train.bf16 && plan.train.fp16)
    fail(ErrorKind::kUsage, "--fp16 and --bf16 exclude each other; give one of them");
  Problems problems;
  require_possible_threads(plan.train.threads, "threads", problems);
  problems.throw_if_any();
  check_output(command.output);
  const DeviceProfile profile = profile_device({.device = measured_device(plan, options),
                                                .backend = plan.train.device == "cpu" ? "cpu" : "cuda",
                                                .dtype = plan.train.bf16   ? DType::kBf16
                                                         : plan.train.fp16 ? DType::kF16
                                                                           : DType::kF32,
                                                .threads = plan.train.threads,
                                                .seconds = command.seconds.value_or(60)});
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
