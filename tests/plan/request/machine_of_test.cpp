#include "libcore/plan/request/machine_of.h"

#include <gtest/gtest.h>

#include "libcore/base/process.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/plan/request/answer.h"
#include "tests/plan/profile/profiles.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

constexpr double Accelerator::*kShared[] = {&Accelerator::half_flops, &Accelerator::float_flops,
                                            &Accelerator::memory_bandwidth, &Accelerator::link_bandwidth};

Machine of_this_processor(int ranks, int local = 0, std::optional<double> memory_gb = {}) {
  PlanCommand command;
  command.plan.gpu = "local";
  command.plan.memory_gb = memory_gb;
  return machine_of(command, {.world = ranks, .local = local});
}

// 64 ranks each have about a 64th of the processor; only about, since the measurement is short and other
// tests may run.
TEST(MachineOf, ItsRanksShareThisProcessor) {
  const Machine one = of_this_processor(1), many = of_this_processor(64), given = of_this_processor(64, 0, 8);
  for (const auto rate : kShared)
    for (const Machine* machine : {&many, &given}) {
      EXPECT_LT(machine->device.*rate, one.device.*rate / 8);
      EXPECT_GT(machine->device.*rate, one.device.*rate / 512);
    }
  EXPECT_NEAR(64 * many.device.memory / one.device.memory, 1, 0.5);
  EXPECT_EQ(given.device.memory, 8e9) << "what is given is a rank's";
  // Eight machines of eight ranks: each rank has its own network, as --network-gbps states.
  const Machine machines = of_this_processor(64, 8);
  EXPECT_LT(machines.device.float_flops, one.device.float_flops);
  EXPECT_GT(machines.device.float_flops, one.device.float_flops / 64);
}

TEST(MachineOf, ADevicesOwnRatesAreEachRanks) {
  PlanCommand command;
  command.plan.gpu = "h100";
  const Machine machine = machine_of(command, {.world = 8});
  EXPECT_EQ(machine.local_world, 8);
  for (const auto rate : kShared) EXPECT_EQ(machine.device.*rate, find_accelerator("h100").*rate);
}

/// Seconds of the best step with a profile of this machine. The total work does not depend on the number of
/// ranks.
double step_with_profile(const std::string& profile, int ranks) {
  PlanCommand command;
  Options options{"autoplan", ""};
  command.add_to(options);
  options.read({"--gpu", "local", "--world-size", std::to_string(ranks), "--global-batch-size", "8",
                "--num-layers", "4", "--hidden-size", "256", "--num-attention-heads", "4", "--seq-length",
                "256", "--vocab-size", "8192", "--json", "--calibrate", profile});
  command.check(options);
  const Json answered = Json::parse(answer(plan_request(command)).text, "plan");
  return answered["plans"].as_array()[0]["step_seconds"].as_double();
}

// A profile measures the whole processor, however many ranks the plan has.
TEST(MachineOf, ItsRanksShareWhatAProfileMeasured) {
  const double rate = of_this_processor(1).device.float_flops;
  DeviceProfile made = test::made_profile({.matrix_rate = rate / 3,
                                           .bandwidth = 2e9,
                                           .half_depth = 30,
                                           .attention = 0.2,
                                           .backward = 0.8,
                                           .start = 3e-6});
  made.device = kLocalDevice;
  made.processor = processor_name();
  made.backend = "cpu";
  made.dtype = "fp32";
  made.threads = usable_cpus();
  const test::TempDir folder;
  const std::string file = folder / "profile.json";
  write_file(file, to_json(made).dump());
  const double one = step_with_profile(file, 1);
  for (const int ranks : {2, 4}) EXPECT_NEAR(step_with_profile(file, ranks) / one, 1, 0.2) << ranks;
}

}  // namespace
}  // namespace megalith
