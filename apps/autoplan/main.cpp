#include <iostream>

#include <unistd.h>

#include "apps/app.h"
#include "apps/autoplan/profile_command.h"
#include "apps/manual_notes.h"
#include "apps/plan_dialects.h"
#include "libcore/base/terminal.h"
#include "libcore/plan/request/answer.h"

namespace {

/// The option --task-type of commands for PAI's DLC: with it, WORLD_SIZE counts servers, not ranks.
struct Processes {
  std::string task_type;

  template <class V>
  void fields(V&& v) {
    v("task-type", task_type, "With llmacc.megatron.GPT, WORLD_SIZE counts servers.",
      megalith::metavar("NAME"), megalith::one_of({"llmacc.megatron.GPT"}), megalith::unlisted());
  }
};

}  // namespace

int main(int argc, char** argv) {
  using namespace megalith;  // NOLINT(google-build-using-namespace): a main of a few lines
  return run_app("autoplan", [&] {
    PlanCommand command;
    if (::isatty(STDOUT_FILENO) == 1) command.columns = columns_of(STDOUT_FILENO);
    Options options("autoplan", "Rank the ways to divide a model over devices, before paying for them.");
    command.add_to(options);
    PlanDialects dialects;
    dialects.add_to(options, command);
    ProfileCommand profile;
    Processes processes;
    options.add("Measuring a device", profile).add("Processes", processes);
    options
        .epilog(
            "The best layout for 64 GPUs, for a GPT of 22 billion parameters:\n"
            "  megalith-autoplan --world-size 64 --local-world-size 8 --gpu h100 \\\n"
            "    --max-global-batch-size 512 --num-layers 48 --hidden-size 6144 \\\n"
            "    --num-attention-heads 64 --seq-length 2048\n"
            "What a step takes on this machine's processor:\n"
            "  megalith-autoplan --gpu local --global-batch-size 8 --num-layers 4 \\\n"
            "    --hidden-size 256 --num-attention-heads 4 --seq-length 256\n"
            "The same after a minute of measuring this processor:\n"
            "  megalith-autoplan profile --output profile.json\n"
            "  megalith-autoplan --gpu local --calibrate profile.json ...\n")
        .environment(
            {{"DEVICE_MEMORY_GB", "Memory of a device, where --device-memory-gb is not given."},
             {"WORLD_SIZE, LOCAL_WORLD_SIZE",
              "Devices in all and of a machine, as a launcher sets them; those of mpirun, srun, Paddle's "
              "launcher and a rank table are read, too."}})
        .environment(tokenizer_variables())
        .files({{"share/megalith/gpus.yaml",
                 "The devices that --gpu knows; the file lies next to the program's folder."}});
    if (!read_options(options, argc, argv)) return 0;
    if (profile.command == "profile") {
      options.check({"Measuring a device"});
      options.tell_ignored();
      run_profile(profile, command, options);
      return 0;
    }
    profile.refuse_alone();
    command.counts_servers = !processes.task_type.empty();
    dialects.check(command, options);
    const PlanAnswer plans = answer(plan_request(command));
    std::cout << plans.text;
    return plans.found ? 0 : exit_code(ErrorKind::kUsage);
  });
}
