#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>

#include <gtest/gtest.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/plan/profile/profiles.h"
#include "tests/support/files.h"
#include "tests/support/models.h"
#include "tests/support/once/pattern.h"
#include "tests/support/terminal.h"

namespace megalith {
namespace {

using test::app;
using test::CommandResult;
using test::run_command;

const char* const k22b =
    " --world-size 64 --local-world-size 8 --max-global-batch-size 16 --num-layers 48 --num-attention-heads "
    "64 "
    "--hidden-size 6144 --seq-length 2048 --max-position-embeddings 2048 --vocab-size 50257";

TEST(Autoplan, RanksPlansForTheDocumentedCommand) {
  const CommandResult result =
      run_command(app("autoplan") + " --task-type llmacc.megatron.GPT" + k22b + " --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json answer = Json::parse(result.out, "answer");
  EXPECT_EQ(answer["parameters"].as_double(),
            22068480000.0);  // 48 * (12 h^2 + 13 h) + (50257 + 2048) h + 2 h
  const Json::Array& plans = answer["plans"].as_array();
  ASSERT_EQ(plans.size(), 10u);
  for (const Json& plan : plans) {
    const int64_t ranks = plan["tensor"].as_int() * plan["pipeline"].as_int() * plan["context"].as_int();
    EXPECT_EQ(ranks * plan["data"].as_int(), 64);
    EXPECT_LE(plan["global_batch"].as_int(), 16);
    EXPECT_LE(plan["memory_bytes"]["device"].as_double(), answer["device_memory_bytes"].as_double());
  }
}

TEST(Autoplan, TakesTheDevicesMemoryFromTheEnvironment) {
  const CommandResult result = run_command("DEVICE_MEMORY_GB=2 " + app("autoplan") + k22b);
  EXPECT_EQ(result.code, 64);
  EXPECT_NE(result.err.find("nothing fits"), std::string::npos) << result.err;
  const CommandResult wrong = run_command("DEVICE_MEMORY_GB=much " + app("autoplan") + k22b);
  EXPECT_EQ(wrong.code, 64);
  EXPECT_NE(wrong.err.find("DEVICE_MEMORY_GB is \"much\""), std::string::npos) << wrong.err;
  for (const char* none : {"nan", "inf", "-inf"})
    EXPECT_EQ(run_command(concat("DEVICE_MEMORY_GB=", none, ' ') + app("autoplan") + k22b).code, 64) << none;
}

TEST(Autoplan, SaysHowManyDevicesADeadlineAndABudgetAsk) {
  const std::string batch =
      " --world-size 64 --local-world-size 8 --global-batch-size 1024 --num-layers 48 --num-attention-heads "
      "64"
      " --hidden-size 6144 --seq-length 2048 --vocab-size 50257";
  const CommandResult result = run_command(app("autoplan") + batch +
                                           " --train-iters 143052 --deadline-days 30 --gpu-hour-price 2"
                                           " --budget 110000 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json scaling = Json::parse(result.out, "answer")["scaling"];
  EXPECT_EQ(scaling["tokens"].as_double(), 143052.0 * 1024 * 2048);
  EXPECT_LE(scaling["soonest"]["days"].as_double(), scaling["fewest"]["days"].as_double());
  EXPECT_LE(scaling["soonest"]["cost"].as_double(), 110000);
  EXPECT_LE(scaling["fewest"]["days"].as_double(), 30);
  const CommandResult no_price = run_command(app("autoplan") + batch + " --budget 5 --train-tokens 1e9");
  EXPECT_EQ(no_price.code, 64);
  EXPECT_NE(no_price.err.find("--budget 5 needs --gpu-hour-price"), std::string::npos) << no_price.err;
  const CommandResult no_tokens = run_command(app("autoplan") + batch + " --deadline-days 5");
  EXPECT_EQ(no_tokens.code, 64);
  EXPECT_NE(no_tokens.err.find("need --train-tokens"), std::string::npos) << no_tokens.err;
}

TEST(Autoplan, CalibratesByMeasurementsOnly) {
  const test::TempDir folder;
  write_file(folder / "notes.txt", "the link is fast\n");
  const CommandResult result = run_command(app("autoplan") + k22b + " --calibrate " + folder / "notes.txt");
  EXPECT_EQ(result.code, 65);
  EXPECT_NE(result.err.find("neither a profile (megalith-autoplan profile), an output of nccl-tests"),
            std::string::npos)
      << result.err;
}

const char* const kHere =
    " --gpu local --global-batch-size 16 --num-layers 2 --hidden-size 64 --num-attention-heads 4 "
    "--seq-length 64 --vocab-size 512";

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

TEST(Autoplan, TakesTheWordPlan) {
  const CommandResult plan = run_command(app("autoplan") + " plan" + k22b + " --json --top 1");
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_EQ(Json::parse(plan.out, "plan")["plans"].as_array().size(), 1u);
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

const char* const kSmall =
    " --world-size 8 --global-batch-size 32 --num-layers 8 --hidden-size 1024 --num-attention-heads 16 "
    "--seq-length 1024 --max-position-embeddings 1024 --vocab-size 50257 ";

TEST(Autoplan, ObeysTheTrainersOptionsOrRefusesThem) {
  const auto plans = [](const std::string& options) {
    const CommandResult result = run_command(app("autoplan") + kSmall + options + " --json");
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out, options);
  };
  EXPECT_EQ(plans("--fp16")["precision"].as_string(), "fp16");
  EXPECT_EQ(plans("--bf16")["precision"].as_string(), "bf16");
  const std::pair<const char*, const char*> kRecompute[] = {
      {"--recompute-activations", "attention"},
      {"--recompute-granularity selective", "attention"},
      {"--recompute", "full"}};
  for (const auto& [option, means] : kRecompute) {
    const Json answer = plans(option);
    for (const Json& plan : answer["plans"].as_array())
      EXPECT_EQ(plan["recompute"].as_string(), means) << option;
  }
  const CommandResult text = run_command(app("autoplan") + kSmall + "--fp16");
  EXPECT_NE(text.out.find(" --fp16\n"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("--bf16"), std::string::npos) << text.out;
  for (const char* option : {"--fp16 --bf16", "--data-parallel-size 3"}) {
    const CommandResult refused = run_command(app("autoplan") + kSmall + option);
    EXPECT_EQ(refused.code, 64) << option;
    EXPECT_NE(refused.err.find(std::string(option).substr(0, 6)), std::string::npos) << refused.err;
  }
}

TEST(Autoplan, FitsATerminalOfEightyColumns) {
  const CommandResult brief = test::run_on_terminal(app("autoplan") + kSmall, 80);
  EXPECT_EQ(brief.code, 0) << brief.out;
  EXPECT_LE(test::longest_line(brief.out), 80u) << brief.out;
  const CommandResult shown = test::run_on_terminal(app("autoplan") + kSmall + "--explain", 80);
  EXPECT_EQ(shown.code, 0) << shown.out;
  EXPECT_LE(test::longest_line(shown.out), 80u) << shown.out;
  EXPECT_NE(shown.out.find("tokens/s"), std::string::npos) << "columns that did not fit continue below";
  // Checks that a command printed over several lines is still one command for the shell.
  const size_t begin = shown.out.find("  torchrun "), end = shown.out.find("\n\n", begin);
  ASSERT_NE(end, std::string::npos) << shown.out;
  const CommandResult words =
      run_command("torchrun() { printf '%s\\n' \"$*\"; }; " + shown.out.substr(begin, end - begin));
  EXPECT_EQ(std::count(words.out.begin(), words.out.end(), '\n'), 1) << words.out << words.err;
  EXPECT_NE(words.out.find("--global-batch-size 32"), std::string::npos) << words.out;
}

TEST(Autoplan, PlansForThisMachine) {
  const CommandResult result =
      run_command(app("autoplan") +
                  " --gpu local --global-batch-size 16 --num-layers 2 --hidden-size 64 "
                  "--num-attention-heads 4 --seq-length 64 --vocab-size 512");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_NE(result.out.find("this machine's processor"), std::string::npos) << result.out;
}

// Without --gpu, each device of a plan is a rank on this machine, so all ranks share its memory.
TEST(Autoplan, RanksOfThisMachineShareItsMemory) {
  const auto memory = [](const std::string& more) {
    const CommandResult result = run_command(app("autoplan") + kHere + " --json" + more);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out, "answer")["device_memory_bytes"].as_double();
  };
  const auto whole =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  EXPECT_LE(memory(" --world-size 16"), whole / 16);
  EXPECT_EQ(memory(" --world-size 16 --device-memory-gb 2"), 2e9);
}

TEST(Autoplan, JsonCarriesTheClosestPlanAndFailsAsTextDoes) {
  const CommandResult result = run_command(app("autoplan") + k22b + " --device-memory-gb 4 --json");
  EXPECT_EQ(result.code, 64);
  EXPECT_NE(result.err.find("no plan fits; \"closest\" holds the nearest one"), std::string::npos)
      << result.err;
  const Json answer = Json::parse(result.out, "answer");
  EXPECT_TRUE(answer["plans"].as_array().empty());
  EXPECT_GT(answer["closest"]["lacking_bytes"].as_double(), 0);
  EXPECT_FALSE(answer["rejected"].as_object().empty());
}

TEST(Autoplan, BothSearchesPrintTheSamePlans) {
  const auto plans = [&](const std::string& search) {
    const CommandResult result = run_command(app("autoplan") + k22b + " --json --top 20 --search " + search);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out, "answer")["plans"].dump();
  };
  EXPECT_EQ(plans("bounded"), plans("exhaustive"));
}

TEST(Autoplan, SaysWhatMakesTheClosestPlanFit) {
  const std::string command = app("autoplan") + k22b +
                              " --device-memory-gb 45 --sharding none"
                              " --tensor-model-parallel-size 8 --pipeline-model-parallel-size 1";
  const CommandResult json = run_command(command + " --json"), text = run_command(command);
  ASSERT_EQ(text.code, 64) << text.out;
  const Json answer = Json::parse(json.out, "answer");
  const std::string change = answer["smallest_change"].as_string();
  EXPECT_TRUE(change.starts_with("--")) << change;
  EXPECT_NE(text.err.find("  fits with " + change), std::string::npos) << text.err;
}

// Text and JSON must show the figures that the trainer itself computes for each stage.
TEST(Autoplan, PrintsTheMemoryOfEveryStageAndTheLaunchLines) {
  const std::string command =
      app("autoplan") + kHere + " --world-size 2 --pipeline-model-parallel-size 2 --device-memory-gb 4";
  const CommandResult json = run_command(command + " --json"), text = run_command(command + " --explain");
  ASSERT_EQ(json.code, 0) << json.err;
  const Json answer = Json::parse(json.out, "answer");
  const Json::Array& stages = answer["stage_memory_bytes"].as_array();
  ASSERT_EQ(stages.size(), 2u);
  double most = 0;
  for (const Json& stage : stages) most = std::max(most, stage["allocated"].as_double());
  EXPECT_EQ(most, answer["plans"].as_array().front()["trainer_bytes"].as_double());
  EXPECT_EQ(text.out.find("as the stage before: 1\n") == std::string::npos,
            text.out.find("\n    1       1  ") != std::string::npos)
      << text.out;
  for (const std::string program : {"megatron", "megalith"})
    for (const std::string launcher : {"torchrun", "srun", "mpirun"})
      EXPECT_NE(answer["launch"][program][launcher].as_string().find("--pipeline-model-parallel-size 2"),
                std::string::npos)
          << program << launcher;
}

// By default the planner skips the memory of candidates that are proven slower, so it cannot count how many
// fit; an exhaustive search can.
TEST(Autoplan, CountsWhatFitsWhereAllIsAsked) {
  const CommandResult bounded = run_command(app("autoplan") + k22b + " --explain");
  EXPECT_NE(bounded.out.find(" priced; the others are proven slower"), std::string::npos) << bounded.out;
  const CommandResult all = run_command(app("autoplan") + k22b + " --explain --search exhaustive");
  EXPECT_NE(all.out.find(" priced, of which "), std::string::npos) << all.out;
  EXPECT_EQ(all.out.find("proven slower"), std::string::npos) << all.out;
  const CommandResult json = run_command(app("autoplan") + k22b + " --json");
  EXPECT_EQ(json.out.find("\"fitting\""), std::string::npos) << json.out;
}

TEST(Autoplan, TakesTheLaunchersSizes) {
  const std::string model =
      " --max-global-batch-size 16 --num-layers 48 --num-attention-heads 64 --hidden-size 6144 --seq-length "
      "2048 "
      "--vocab-size 50257 --json --top 1";
  const CommandResult result = run_command("WORLD_SIZE=16 LOCAL_WORLD_SIZE=4 " + app("autoplan") + model);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out, "answer")["devices"].as_int(), 16);
  const std::pair<const char*, int> kLaunchers[] = {
      {"OMPI_COMM_WORLD_SIZE=16 OMPI_COMM_WORLD_LOCAL_SIZE=4", 16},
      {"SLURM_STEP_ID=0 SLURM_NTASKS=16", 16},
      {"PADDLE_TRAINERS_NUM=8", 8},
      {"RANK_SIZE=16", 16}};
  for (const auto& [variables, devices] : kLaunchers) {
    const CommandResult found = run_command(std::string(variables) + ' ' + app("autoplan") + model);
    ASSERT_EQ(found.code, 0) << variables << found.err;
    EXPECT_EQ(Json::parse(found.out, "answer")["devices"].as_int(), devices) << variables;
  }
  const CommandResult servers = run_command("WORLD_SIZE=2 LOCAL_WORLD_SIZE=8 " + app("autoplan") + model +
                                            " --task-type llmacc.megatron.GPT");
  ASSERT_EQ(servers.code, 0) << servers.err;
  EXPECT_EQ(Json::parse(servers.out, "answer")["devices"].as_int(), 16) << "docs/from-dlc.md";
  EXPECT_EQ(servers.err.find("ignored"), std::string::npos) << servers.err;
  const std::pair<const char*, const char*> kWrong[] = {
      {"WORLD_SIZE=many", "WORLD_SIZE=\"many\" in the environment: wanted a number"},
      {"WORLD_SIZE=2 LOCAL_WORLD_SIZE=8", "WORLD_SIZE=2 is not a multiple of LOCAL_WORLD_SIZE=8"},
      {"WORLD_SIZE=8 OMPI_COMM_WORLD_SIZE=x LOCAL_WORLD_SIZE=3", "WORLD_SIZE=8 is not a multiple of"}};
  for (const auto& [variables, says] : kWrong) {
    const CommandResult wrong = run_command(std::string(variables) + ' ' + app("autoplan") + model);
    EXPECT_EQ(wrong.code, 64) << variables;
    EXPECT_NE(wrong.err.find(says), std::string::npos) << wrong.err;
  }
}

// The planner searches a size that is not given; it does not assume 1.
TEST(Autoplan, SearchesTheSizesBesideTheDataRanks) {
  const std::string model = test::replaced(std::string(k22b), "--world-size 64", "");
  const auto run = [&](const std::string& options) { return run_command(app("autoplan") + model + options); };
  const CommandResult result = run(" --world-size 16 --data-parallel-size 2 --json");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json answer = Json::parse(result.out, "answer");
  ASSERT_FALSE(answer["plans"].as_array().empty());
  for (const Json& plan : answer["plans"].as_array()) {
    EXPECT_EQ(plan["data"].as_int(), 2);
    EXPECT_EQ(plan["tensor"].as_int() * plan["pipeline"].as_int() * plan["context"].as_int(), 8);
  }
  const std::pair<const char*, const char*> kWrong[] = {
      {" --world-size 16 --data-parallel-size 3",
       "--data-parallel-size 3 * 1 ranks of a model are 3, which does not divide --world-size 16"},
      {" --world-size 16 --data-parallel-size 2 --tensor-model-parallel-size 4 --context-parallel-size 1 "
       "--pipeline-model-parallel-size 1",
       "--data-parallel-size 2 * 4 ranks of a model are 8, not --world-size 16"},
      {" --world-size 16 --nproc 4", "--world-size 16 and --nproc 4 contradict each other"}};
  for (const auto& [options, says] : kWrong) {
    const CommandResult wrong = run(options);
    EXPECT_EQ(wrong.code, 64) << options;
    EXPECT_NE(wrong.err.find(says), std::string::npos) << wrong.err;
  }
}

// The NVLink domain of GB200s joins 72 devices, 4 from each host.
TEST(Autoplan, PricesLinksThatJoinMachines) {
  const auto exchange = [](const std::string& more) {
    const CommandResult result = run_command(
        app("autoplan") +
        " --gpu GB200-186GB --world-size 64 --global-batch-size 64 --num-layers 24 --hidden-size 8192 "
        "--num-attention-heads 64 --seq-length 4096 --vocab-size 50257 "
        "--tensor-model-parallel-size 16 --pipeline-model-parallel-size 1 --micro-batch-size 1 "
        "--context-parallel-size 1 --sequence-parallel --recompute-granularity full "
        "--recompute-method uniform --recompute-num-layers 1 --json --top 1" +
        more);
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out, "answer")["plans"]
        .as_array()
        .front()["time_seconds"]["tensor comm"]
        .as_double();
  };
  const double hosts = exchange(" --local-world-size 4"), rack = exchange(" --local-world-size 64");
  EXPECT_EQ(hosts, rack);
  EXPECT_GT(exchange(" --local-world-size 4 --link-domain 4"), 4 * rack);
  const test::TempDir folder;
  write_file(folder / "cluster.yaml", "local-world-size: 4\nlink-domain: 4\n");
  EXPECT_GT(exchange(" --cluster " + folder / "cluster.yaml"), 4 * rack);
  EXPECT_EQ(exchange(" --link-domain 72 --cluster " + folder / "cluster.yaml"), rack);
}

// An NVLink domain holds 72 GB200s or 8 H100s. Of 128 or 12 devices, a machine gets the largest divisor that
// does not exceed the size of the domain.
TEST(Autoplan, DividesAnyNumberOfDevicesIntoMachines) {
  const std::string model =
      " --global-batch-size 384 --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length "
      "2048 "
      "--vocab-size 50257";
  const CommandResult rack = run_command(app("autoplan") + " --gpu GB200-186GB --world-size 128" + model);
  ASSERT_EQ(rack.code, 0) << rack.err;
  EXPECT_NE(rack.out.find("each, 64 a machine, 72 joined by links)"), std::string::npos) << rack.out;
  const CommandResult dozen = run_command(app("autoplan") + " --gpu h100 --world-size 12" + model);
  ASSERT_EQ(dozen.code, 0) << dozen.err;
  EXPECT_NE(dozen.out.find("each, 6 joined by links)"), std::string::npos) << dozen.out;
  const CommandResult given =
      run_command(app("autoplan") + " --gpu h100 --world-size 12 --local-world-size 8" + model);
  EXPECT_EQ(given.code, 64);
  EXPECT_NE(given.err.find("--world-size 12 is not a multiple of --local-world-size 8"), std::string::npos);
}

// According to their data sheets, tensor cores multiply bf16 since Ampere, 8-bit types since Ada and Hopper,
// and types with scale blocks (mxfp8, nvfp4) since Blackwell.
TEST(Autoplan, RefusesFormatsThatADeviceHasNot) {
  const auto plan = [](const std::string& device) {
    return run_command(app("autoplan") +
                       " --world-size 8 --global-batch-size 64 --num-layers 8 --hidden-size 2048 "
                       "--num-attention-heads 16 --seq-length 2048 --vocab-size 50257 --gpu " +
                       device);
  };
  const std::pair<const char*, const char*> refused[] = {
      {"a100-80 --fp8-format hybrid", "--fp8-format hybrid: A100-SXM-80GB has no products in 8 bits"},
      {"h100 --fp4-format e2m1", "--fp4-format e2m1: H100-SXM-80GB has no products in 4 bits"},
      {"h100 --fp8-format e4m3 --fp8-recipe mxfp8", "--fp8-recipe mxfp8: H100-SXM-80GB has no products"},
      {"V100-SXM2-32GB --bf16", "--bf16: V100-SXM2-32GB has no products in bf16; give --fp16"},
      {"910b --fp8-format e4m3", "--fp8-format e4m3: Ascend910B-64GB has no products in 8 bits"},
      {"local --fp8-format e4m3", "--fp8-format e4m3: this machine's processor has no products in 8 bits"}};
  for (const auto& [device, message] : refused) {
    const CommandResult result = plan(device);
    EXPECT_EQ(result.code, 64) << device;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("B200-180GB"), std::string::npos) << result.err;
  }
  for (const char* const device : {"h100 --fp8-format hybrid", "b200 --fp8-format e4m3 --fp8-recipe mxfp8",
                                   "b200 --fp4-format e2m1", "a100-80 --bf16", "V100-SXM2-32GB --fp16"})
    EXPECT_EQ(plan(device).code, 0) << device;
  const CommandResult half = plan("V100-SXM2-32GB");
  EXPECT_NE(half.out.find(" --fp16"), std::string::npos) << half.out;
  EXPECT_EQ(half.out.find("bf16"), std::string::npos) << half.out;
}

TEST(Autoplan, TakesAClusterAndAModelFromFiles) {
  const test::TempDir folder;
  write_file(folder / "cluster.yaml", "gpu: h100\nworld-size: 32\nlocal-world-size: 8\nnetwork-gbps: 200\n");
  write_file(folder / "config.json", test::kLlama8BConfig);
  const CommandResult result =
      run_command(app("autoplan") + " --cluster " + (folder / "cluster.yaml") + " --hf " +
                  (folder / "config.json") + " --global-batch-size 128 --json --top 1");
  ASSERT_EQ(result.code, 0) << result.err;
  const Json answer = Json::parse(result.out, "answer");
  EXPECT_EQ(answer["parameters"].as_double(), 8030261248.0);
  EXPECT_EQ(answer["device"].as_string(), "H100-SXM-80GB");
  EXPECT_EQ(answer["devices"].as_int(), 32);
  write_file(folder / "cluster.yaml", "gpu: h100\nworld-size: 16.7\n");
  const CommandResult part = run_command(app("autoplan") + k22b + " --cluster " + (folder / "cluster.yaml"));
  EXPECT_EQ(part.code, 65);
  EXPECT_NE(part.err.find("world-size is \"16.7\", wanted a number of devices"), std::string::npos)
      << part.err;
  write_file(folder / "cluster.yaml", "gpus: 3\n");
  const CommandResult wrong = run_command(app("autoplan") + k22b + " --cluster " + (folder / "cluster.yaml"));
  EXPECT_EQ(wrong.code, 65);
  EXPECT_NE(wrong.err.find("\"gpus\" does not describe a cluster"), std::string::npos) << wrong.err;
}

TEST(Autoplan, SimulatesAStepOnManyDevices) {
  const CommandResult text = run_command(app("autoplan") + k22b + " --simulate 64,512");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("One step of this version's trainer, simulated on A100-SXM-80GB in bf16;"),
            std::string::npos)
      << text.out;
  const std::string assumed = "--simulate: the step is in bf16, as all plans for GPUs are";
  EXPECT_NE(text.err.find(assumed), std::string::npos) << text.err;
  const CommandResult said = run_command(app("autoplan") + k22b + " --simulate 64 --fp16");
  EXPECT_NE(said.out.find("A100-SXM-80GB in fp16;"), std::string::npos) << said.out;
  EXPECT_EQ(said.err.find("as all plans for GPUs are"), std::string::npos) << said.err;
  const CommandResult json = run_command(app("autoplan") + k22b + " --simulate 64,512 --json");
  const Json steps = Json::parse(json.out, "answer")["simulated"];
  ASSERT_EQ(steps.as_array().size(), 2U) << json.out;
  for (const Json& step : steps.as_array()) {
    EXPECT_GE(step["step_seconds"].as_double(), step["ops_seconds"].as_double());
    EXPECT_GT(step["mfu"].as_double(), 0);
    EXPECT_LT(step["mfu"].as_double(), 1);
  }
  EXPECT_EQ(steps.as_array()[1]["devices"].as_int(), 512);
  const CommandResult wrong = run_command(app("autoplan") + k22b + " --simulate 64,many");
  EXPECT_EQ(wrong.code, 64);
  EXPECT_NE(wrong.err.find("--simulate \"64,many\": \"many\" is not a number of devices"), std::string::npos)
      << wrong.err;
}

TEST(Autoplan, ObeysOrRefusesEachParallelOption) {
  const auto best = [&](const std::string& options) {
    const CommandResult result = run_command(app("autoplan") + k22b + " --json --top 1 " + options);
    EXPECT_EQ(result.code, 0) << options << result.err;
    return Json::parse(result.out, "answer")["plans"].as_array().at(0);
  };
  EXPECT_EQ(best("--tensor-model-parallel-size 2")["tensor"].as_int(), 2);
  EXPECT_EQ(best("--context-parallel-size 4")["context"].as_int(), 4);
  EXPECT_EQ(best("--sharding stage3")["zero_stage"].as_int(), 3);
  EXPECT_EQ(best("--recompute-granularity full --recompute-method uniform")["recompute"].as_string(), "full");
  EXPECT_EQ(best("--recompute-granularity selective")["recompute"].as_string(), "attention");
  EXPECT_EQ(best("--pipeline-layers 11,13,13,11")["stage_layers"].dump(), "[11, 13, 13, 11]");
  EXPECT_EQ(best("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 9")["stage_layers"]
                .as_array()[0]
                .as_int(),
            9);
  const auto refusal = [&](const std::string& options) {
    const CommandResult result = run_command(app("autoplan") + k22b + ' ' + options);
    EXPECT_EQ(result.code, 64) << options;
    return result.err;
  };
  EXPECT_EQ(best("--data-parallel-size 4")["data"].as_int(), 4);
  EXPECT_NE(
      refusal("--expert-model-parallel-size 2").find("--expert-model-parallel-size 2 needs --num-experts"),
      std::string::npos);
  EXPECT_NE(refusal("--expert-tensor-parallel-size 2").find("--expert-tensor-parallel-size 2 needs"),
            std::string::npos);
  EXPECT_NE(refusal("--gradient-accumulation-steps 2").find("--gradient-accumulation-steps"),
            std::string::npos);
  EXPECT_NE(refusal("--rampup-batch-size 8 8 1000").find("--rampup-batch-size"), std::string::npos) << "B2";
  EXPECT_NE(refusal("--step-batch-size-schedule 0:8").find("--step-batch-size-schedule: a plan is for one"),
            std::string::npos);
  EXPECT_NE(refusal("--num-distributed-optimizer-instances 2").find("--num-distributed-optimizer-instances"),
            std::string::npos)
      << "X1";
  EXPECT_NE(refusal("--fp8-recipe mxfp8").find("--fp8-recipe"), std::string::npos);
}

// A given --global-batch-size is kept if --max-global-batch-size allows it. docs/from-dlc.md: "Sizes that the
// command line gives are kept".
TEST(Autoplan, KeepsAGivenGlobalBatchBelowTheLargest) {
  const CommandResult kept = run_command(app("autoplan") + k22b + " --global-batch-size 8 --json --top 3");
  ASSERT_EQ(kept.code, 0) << kept.err;
  const Json answer = Json::parse(kept.out, "answer");
  ASSERT_FALSE(answer["plans"].as_array().empty());
  for (const Json& plan : answer["plans"].as_array()) EXPECT_EQ(plan["global_batch"].as_int(), 8);
  const CommandResult above = run_command(app("autoplan") + k22b + " --global-batch-size 64");
  EXPECT_EQ(above.code, 64);
  EXPECT_NE(above.err.find("--global-batch-size 64 is above --max-global-batch-size 16"), std::string::npos)
      << above.err;
}

// 31 layers and an embedding or a loss that counts as a layer are 32, which divide into stages and chunks.
TEST(Autoplan, InterleavesWhereOneEndCountsAsALayer) {
  const std::string model =
      " --world-size 16 --global-batch-size 64 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 "
      "--vocab-size 50257 --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 4 --json";
  for (const std::string end : {"embedding", "loss"}) {
    const CommandResult result =
        run_command(app("autoplan") + model + " --num-layers 31 --account-for-" + end + "-in-pipeline-split");
    ASSERT_EQ(result.code, 0) << result.err;
    const Json plan = Json::parse(result.out, "answer")["plans"].as_array().front();
    EXPECT_EQ(plan["chunks"].as_int(), 4);  // (31 + 1) layers / (2 stages * 4)
    const Json::Array& layers = plan["stage_layers"].as_array();
    EXPECT_EQ(layers.front().as_int(), end == "embedding" ? 15 : 16);
    EXPECT_EQ(layers.back().as_int(), end == "embedding" ? 16 : 15);
  }
}

// 22 billion parameters do not fit one device, but the question is how many there should be.
TEST(Autoplan, PlansWholeMachinesWhereTheirNumberIsTheQuestion) {
  const std::string model =
      app("autoplan") +
      " --max-global-batch-size 16 --num-layers 48 --num-attention-heads 64 --hidden-size 6144 "
      "--seq-length 2048 --vocab-size 50257 ";
  const auto run = [&](const std::string& options) {
    const CommandResult result = run_command(model + options);
    EXPECT_EQ(result.code, 0) << options << result.err;
    return result.out;
  };
  const auto scaling = [&](const std::string& options) {
    return Json::parse(run(options + " --train-tokens 1e11 --json"), "plan")["scaling"].dump();
  };
  EXPECT_EQ(scaling(""), scaling("--world-size 64 --local-world-size 8"));
  EXPECT_EQ(scaling("--local-world-size 8"), scaling("--world-size 8"));
  EXPECT_EQ(run("--simulate 64 --tensor-model-parallel-size 8"),
            run("--simulate 64 --tensor-model-parallel-size 8 --local-world-size 8"));
}

TEST(Autoplan, RefusesStagesOfMoreLayersThanTheModelHas) {
  const auto refused = [&](const std::string& options, const std::string& words) {
    const CommandResult result = run_command(app("autoplan") + k22b + ' ' + options);
    EXPECT_EQ(result.code, 64) << options;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  };
  refused("--num-layers-per-virtual-pipeline-stage 4194304 --pipeline-model-parallel-size 1024",
          "V1: 48 layers are not a multiple of pipeline 1024 * 4194304 of");
  refused(
      "--software nanotron --num-layers-per-virtual-pipeline-stage 12 --pipeline-model-parallel-size 2",
      "12: --software nanotron divides 48 layers over 2 stages by a rule of its own, which is not planned");
  refused("--pipeline-layers 2147483648",
          "--pipeline-layers: \"2147483648\" is not a number of layers from 1 to 48 (--num-layers)");
  refused("--pipeline-layers 24,49", "--pipeline-layers: \"49\" is not a number of layers from 1 to 48");
  refused("--decoder-first-pipeline-num-layers 2147483647 --decoder-last-pipeline-num-layers 2147483647",
          "--decoder-first-pipeline-num-layers 2147483647 is more than the 48 layers of the model");
  refused("--num-layers 2000000000", "--num-layers 2000000000 is more than 65536");
  refused("--world-size 0", "--world-size 0: wanted a number of devices from 1");
}

TEST(Autoplan, WritesAPageATraceAndAJob) {
  const test::TempDir folder;
  const std::string page = folder / "plan.html", trace = folder / "plan.json";
  const CommandResult result =
      run_command(app("autoplan") + k22b + " --emit k8s --html " + page + " --trace " + trace);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(Json::parse(result.out, "job")["kind"].as_string(), "PyTorchJob");
  EXPECT_NE(read_file(page).find("</html>"), std::string::npos);
  EXPECT_FALSE(Json::load(trace)["traceEvents"].as_array().empty());
}

}  // namespace
}  // namespace megalith
