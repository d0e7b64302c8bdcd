#pragma once

#include <optional>
#include <string>

#include "libcore/options/cli.h"
#include "libcore/plan/request/plan_command.h"

namespace megalith {

/// The options of `megalith-autoplan profile`. It also reads these, which it shares with planning: --device,
/// --threads, --bf16, --fp16, --gpu and --gpu-file.
struct ProfileCommand {
  std::string command = "plan", output;
  std::optional<double> seconds;

  template <class V>
  void fields(V&& v) {
    v("command", command,
      "plan: rank plans. profile: measure this machine's processor in fp32 or the dtype of --bf16 or --fp16, "
      "or its GPU with --device cuda, --gpu NAME and one of these, for --calibrate.",
      positional(), one_of({"plan", "profile"}));
    v("seconds", seconds, "Longest time that profile measures; it stops earlier once its figures are steady.",
      between(1, 86400), default_text("60"));
    v("output", output, "Write what profile measured there; its folder is made.", metavar("FILE"),
      default_text("stdout"));
  }
  void refuse_alone() const;  // Throws kUsage if --seconds or --output is given without the word profile.
};

/// Measures and writes the profile; warns if most points were not steady. Throws kUsage, before anything is
/// measured, if an option has no effect, if a GPU lacks its name or dtype, or if the output is an input.
void run_profile(const ProfileCommand&, const PlanCommand&, const Options&);

}  // namespace megalith
