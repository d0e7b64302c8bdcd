#include "libcore/plan/request/machine_of.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/machine/proc.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/plan/request/answer.h"
#include "libcore/plan/search/goal.h"
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

// Plans for other numbers of devices are those of a command that gives that number.
TEST(MachineOf, GivesOtherNumbersOfDevicesTheirWholeMachines) {
  PlanCommand command;
  for (const auto& [gpu, whole] : {std::pair{"h100", 8}, std::pair{"GB200", 72}}) {
    command.plan.gpu = gpu;
    for (const int world : {1, 4, 12, 144}) {
      PlanProblem p;
      p.machine = machine_of(command, {.world = world});
      for (const int other : {1, 2, 8, 12, 72, 144}) {
        const Machine here = with_devices(p, other).machine;
        const Machine told = machine_of(command, {.world = other});
        EXPECT_EQ(here.world, other);
        EXPECT_EQ(here.local_world, told.local_world) << gpu << ' ' << world << ' ' << other;
        EXPECT_LE(here.local_world, whole);
        EXPECT_EQ(here.domain(), told.domain());
      }
    }
  }
}

TEST(MachineOf, TakesTheSizeOfAMachineForQuestionsAboutTheirNumber) {
  PlanCommand command;
  command.plan.gpu = "h100";
  EXPECT_THROW(machine_of(command, {.local = 8}), Error);
  command.plan.simulate = "64";
  EXPECT_EQ(machine_of(command, {.local = 4}).local_world, 4);
  command.plan.simulate.clear();
  command.plan.train_tokens = 1e9;
  PlanProblem p;
  p.machine = machine_of(command, {.local = 4});
  EXPECT_EQ(with_devices(p, 64).machine.local_world, 4);
}

TEST(MachineOf, RefusesWhatADeviceLacksByName) {
  PlanCommand command;
  command.given.anywhere = {"attention-kernel", "tp-comm-overlap"};
  const auto refusal = [&](const char* gpu) -> std::string {
    command.plan.gpu = gpu;
    try {
      machine_of(command, {.world = 8});
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  command.plan.attention = AttentionKernel::kFlash2;
  EXPECT_EQ(refusal("h100"), "");
  EXPECT_TRUE(
      refusal("v100").starts_with("--attention-kernel flash2: V100-SXM2-32GB has no attention kernels "
                                  "that keep no scores; leave it out, or plan for one of "))
      << refusal("v100");
  for (const char* gpu : {"rtx4090", "910b"})
    EXPECT_TRUE(refusal(gpu).starts_with("--tp-comm-overlap: ")) << gpu << refusal(gpu);
  command.plan.overlap_tensor = false;
  EXPECT_EQ(refusal("910b"), "");
  command.plan.attention = AttentionKernel::kTorch;
  EXPECT_EQ(refusal("v100"), "");
  command.plan.attention_backend = "fused";
  EXPECT_TRUE(refusal("v100").starts_with("--attention-backend fused: ")) << refusal("v100");
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
