#pragma once

#include <optional>
#include <string>

#include "libcore/config/cli.h"
#include "libcore/plan/plan_options.h"

namespace megalith {

/// What `megalith-autoplan profile` reads beside the options that planning has too: --device, --threads,
/// --bf16,
/// --fp16, --gpu and --gpu-file.
struct ProfileCommand {
  std::string command, output;
  std::optional<double> seconds;

  template <class V>
  void fields(V&& v) {
    v("command", command,
      "profile: measure this machine's processor or, with --device cuda and --gpu NAME, its GPU in the dtype "
      "of --bf16, --fp16 or else fp32, for --calibrate.",
      positional(), one_of({"profile"}), default_text("plan"));
    v("seconds", seconds, "Time that profile measures for; less when its figures are steady before.",
      between(1, 86400), default_text("60"));
    v("output", output, "Write what profile measured there.", metavar("FILE"), default_text("stdout"));
  }
  void refuse_alone() const;  // kUsage when they are given without the word
};

/// Measures, and writes the profile. kUsage for an option of planning, which would change nothing.
void run_profile(const ProfileCommand&, const PlanCommand&, const Options&);

}  // namespace megalith
