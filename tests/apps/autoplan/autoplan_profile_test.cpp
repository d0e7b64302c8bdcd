// Profiles of a device that megalith-autoplan takes, and plans with what was measured.
#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/apps/autoplan/commands.h"
#include "tests/plan/profile/profiles.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::app;
using test::CommandResult;
using test::k22b;
using test::kHere;
using test::run_command;

TEST(Autoplan, CalibratesByMeasurementsOnly) {
  const test::TempDir folder;
  write_file(folder / "notes.txt", "the link is fast\n");
  const CommandResult result = run_command(app("autoplan") + k22b + " --calibrate " + folder / "notes.txt");
  EXPECT_EQ(result.code, 65);
  EXPECT_NE(result.err.find("neither a profile (megalith-autoplan profile), an output of nccl-tests"),
            std::string::npos)
      << result.err;
}

TEST(Autoplan, ProfilesThisProcessorAndPlansWithIt) {
  const test::TempDir folder;
  const std::string file = folder / "profile.json";
  const CommandResult made = run_command(app("autoplan") + " profile --seconds 2 --output " + file);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.out, "");
  EXPECT_EQ(made.err.find('\r'), std::string::npos) << "progress is for terminals";
  const Json profile = Json::load(file);
  EXPECT_EQ(profile["dtype"].as_string(), "fp32");
  EXPECT_EQ(profile["backend"].as_string(), "cpu");
  EXPECT_LT(profile["seconds"].as_double(), 20);
  const Json::Array& points = profile["points"].as_array();
  EXPECT_GT(points.size(), 10u);
  for (const Json& point : points) EXPECT_GT(point["seconds"].as_double(), 0);
  const auto unsteady = std::count_if(points.begin(), points.end(),
                                      [](const Json& point) { return point["spread"].as_double() > 0.1; });
  EXPECT_EQ(made.err.find("measure while nothing else runs") != std::string::npos,
            2 * static_cast<size_t>(unsteady) > points.size())
      << made.err;

  // The rates were measured for only a third of a second, maybe while other tests ran. They may be too
  // unsteady for a plan, so a refusal is right, too.
  const CommandResult plan = run_command(app("autoplan") + kHere + " --json --calibrate " + file);
  ASSERT_TRUE(plan.code == 0 || plan.code == 64) << plan.code << plan.err;
  if (plan.code == 0) {
    EXPECT_NE(plan.err.find("product: error of the points"), std::string::npos) << plan.err;
    EXPECT_FALSE(Json::parse(plan.out, "plan")["plans"].as_array().empty());
  } else {
    EXPECT_NE(plan.err.find("--calibrate " + file), std::string::npos) << plan.err;
    EXPECT_TRUE(plan.err.find("points that the fit has not seen would be missed") != std::string::npos ||
                plan.err.find(" would be ") != std::string::npos ||
                plan.err.find("that this machine's processor can have") != std::string::npos)
        << plan.err;
  }

  const std::pair<std::string, const char*> kOthers[] = {
      {" --bf16", "for fp32, the plan for bf16"},
      {" --threads 4000", "for 4000"},
      {" --calibrate " + file, "are both profiles; give one"}};
  for (const auto& [option, says] : kOthers) {
    const CommandResult refused = run_command(app("autoplan") + kHere + option + " --calibrate " + file);
    EXPECT_EQ(refused.code, 64) << option;
    EXPECT_NE(refused.err.find(says), std::string::npos) << refused.err;
  }
  const CommandResult gpu = run_command(app("autoplan") + k22b + " --gpu h100 --calibrate " + file);
  EXPECT_EQ(gpu.code, 64);
  EXPECT_NE(gpu.err.find("for \"this machine's processor\", the plan for H100"), std::string::npos)
      << gpu.err;
}

// Plans with an invented profile: an H100 at 70 % of the rate in its data sheet.
TEST(Autoplan, PlansWithAGpusProfile) {
  const test::TempDir folder;
  const std::string file = folder / "h100.json";
  const auto write = [&](const DeviceProfile& profile) { write_file(file, to_json(profile).dump()); };
  const std::string gpu = app("autoplan") + k22b + " --gpu h100 --json --top 1 --calibrate " + file;
  write(test::made_gpu_profile("H100-SXM-80GB", 700e12, 2.8e12));
  const CommandResult plan = run_command(gpu + " --bf16");
  ASSERT_EQ(plan.code, 0) << plan.err;
  EXPECT_EQ(plan.err.find("warning"), std::string::npos) << plan.err;
  const double step = Json::parse(plan.out, "plan")["plans"].as_array()[0]["step_seconds"].as_double();

  write(test::made_gpu_profile("H100-SXM-80GB", 600e12, 2.8e12));
  const CommandResult slower = run_command(gpu + " --bf16");
  ASSERT_EQ(slower.code, 0) << slower.err;
  EXPECT_GT(Json::parse(slower.out, "plan")["plans"].as_array()[0]["step_seconds"].as_double(), 1.08 * step);

  const CommandResult narrow = run_command(gpu + " --fp8-format hybrid");
  EXPECT_EQ(narrow.code, 64);
  EXPECT_NE(narrow.err.find("plans in 8 or 4 bits take no profile"), std::string::npos) << narrow.err;
  DeviceProfile noisy = test::made_gpu_profile("H100-SXM-80GB", 700e12, 2.8e12);
  for (ProfilePoint& point : noisy.points) point.spread = 0.5;
  write(noisy);
  const CommandResult warned = run_command(gpu + " --bf16");
  EXPECT_EQ(warned.code, 0) << warned.err;
  EXPECT_NE(warned.err.find("warning: --calibrate " + file + ": the times of 200 of 200 points spread"),
            std::string::npos)
      << warned.err;
}

// What contradicts the profile is named, and not what a fit to it would say.
TEST(Autoplan, RefusesFilesThatContradictEachOtherBeforeItFits) {
  const test::TempDir folder;
  const std::string impossible = folder / "impossible.json", words = folder / "words.txt",
                    run = folder / "run.log", other = folder / "other.log";
  write_file(impossible, to_json(test::made_gpu_profile("H100-SXM-80GB", 7000e12, 2.8e12)).dump());
  write_file(words, "the link is fast\n");
  for (const std::string& log : {run, other}) write_file(log, "elapsed time per iteration (ms): none\n");
  const std::string command = app("autoplan") + k22b + " --gpu h100 --bf16 --calibrate " + impossible;
  const CommandResult alone = run_command(command);
  EXPECT_NE(alone.err.find(" that H100-SXM-80GB can have"), std::string::npos) << alone.err;
  for (const auto& [more, code, says] :
       {std::tuple{impossible, 64, "are both profiles; give one"},
        {words, 65, "neither a profile"},
        {run + " --anchor " + other, 64, "are logs of several runs; give one"}}) {
    const CommandResult refused = run_command(command + " --calibrate " + more);
    EXPECT_EQ(refused.code, code) << refused.err;
    EXPECT_NE(refused.err.find(says), std::string::npos) << refused.err;
  }
}

TEST(Autoplan, OverwritesNoInputByAProfile) {
  const test::TempDir folder;
  const std::string gpus = folder / "g.yaml", config = folder / "c.yaml";
  const std::string device = "MINE: [100, 10, 0, 0, 80, 1, 100, 8, 100, 100, 400]\n",
                    options = "seconds: 1\n";
  write_file(gpus, device);
  write_file(config, options);
  const CommandResult first = run_command(app("autoplan") + " profile --device cuda --bf16 --gpu MINE" +
                                          " --gpu-file " + gpus + " --output " + gpus);
  EXPECT_EQ(first.code, 64);
  EXPECT_NE(first.err.find("is also an input, of --gpu-file"), std::string::npos) << first.err;
  EXPECT_EQ(read_file(gpus), device);
  const CommandResult second =
      run_command(app("autoplan") + " profile --config " + config + " --output " + config);
  EXPECT_EQ(second.code, 64);
  EXPECT_NE(second.err.find("is also an input, of --config"), std::string::npos) << second.err;
  EXPECT_EQ(read_file(config), options);
}

TEST(Autoplan, MakesTheFolderOfAProfileBeforeItMeasures) {
  const test::TempDir folder;
  write_file(folder / "file", "");
  const CommandResult made =
      run_command(app("autoplan") + " profile --seconds 1 --output " + folder / "new/deep/p.json");
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(Json::load(folder / "new/deep/p.json")["backend"].as_string(), "cpu");
  const CommandResult refused = run_command("timeout 20 " + app("autoplan") +
                                            " profile --seconds 600 --output " + folder / "file/p.json");
  EXPECT_EQ(refused.code, 74) << refused.err;
}

TEST(Autoplan, LeavesNothingOfAProfileThatIsInterrupted) {
  const test::TempDir folder;
  const CommandResult result = run_command("timeout --signal INT --kill-after 10 1 " + app("autoplan") +
                                           " profile --seconds 60 --output " + folder / "profile.json");
  EXPECT_EQ(result.code, 124) << result.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Autoplan, RefusesWhatAProfileDoesNotObey) {
  const std::pair<std::string, const char*> kWrong[] = {
      {" profile --num-layers 4", "--num-layers is for planning"},
      {" profile --device cuda", "needs --gpu NAME"},
      {" profile --device cuda --gpu h100", "--device cuda needs --bf16 or --fp16"},
      {" profile --device gpu --gpu h100 --bf16", "--device gpu: a profile describes one device"},
      {" profile --gpu-file nope.yaml", "--gpu-file nope.yaml is for --device cuda and --gpu NAME"},
      {" profile --gpu h100", "give --device cuda"},
      {" profile --bf16 --fp16", "exclude each other"},
      {" profile --seconds 0", "seconds"},
      {" profil", "profil"},
      {std::string(k22b) + " --output p.json", "--output p.json is for megalith-autoplan profile"},
      {std::string(k22b) + " --seconds 5", "--seconds 5 is for megalith-autoplan profile"}};
  for (const auto& [options, says] : kWrong) {
    const CommandResult result = run_command(app("autoplan") + options);
    EXPECT_EQ(result.code, 64) << options;
    EXPECT_NE(result.err.find(says), std::string::npos) << options << ": " << result.err;
  }
}

}  // namespace
}  // namespace megalith
