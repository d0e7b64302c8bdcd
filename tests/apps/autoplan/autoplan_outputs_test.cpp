// Tests what megalith-autoplan prints and writes besides plans. It must write every requested output or name
// what it refuses.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/io/cache/build_cache.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/options/fields.h"
#include "tests/support/files.h"
#include "tests/support/models.h"
#include "tests/support/once/pattern.h"

namespace megalith {
namespace {

using test::app;
using test::CommandResult;
using test::run_command;

std::string log_text(const std::string& arguments) {
  std::string log = arguments;
  for (int step = 1; step < 6; ++step)
    log += " iteration 1/ 9 | elapsed time per iteration (ms): 9000.0 | learning rate: 1.0E-04 |\n";
  return log;
}

std::string line_of(const std::string& name, const std::string& value) {
  return "  " + name + " ............. " + value + '\n';
}

const char* const kDense =
    " --gpu h100 --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 --vocab-size "
    "32000 "
    "--world-size 16 --global-batch-size 64 ";

TEST(AutoplanOutputs, RefusesWhatAModeDoesNotMake) {
  const test::TempDir folder;
  write_file(folder / "run.log", log_text(""));
  const std::string verify = "--verify-log " + (folder / "run.log") + ' ';
  const std::pair<std::string, std::string> kRefused[] = {
      {verify + "--html v.html --trace v.json", "leave out --html, --trace"},
      {verify + "--emit slurm", "leave out --emit"},
      {verify + "--explain", "leave out --explain"},
      {verify + "--simulate 32", "leave out --simulate"},
      {verify + "--train-tokens 1e12 --deadline-days 3", "leave out --train-tokens, --deadline-days"},
      {"--simulate 32 --trace v.json", "--simulate 32 prints steps in place of plans; leave out --trace"},
      {"--simulate 32 --explain", "leave out --explain"},
      {"--simulate 32 --deadline-days 3", "leave out --deadline-days"},
      {"--simulate 32 --html v.html --emit k8s", "leave out --html, --emit"},
      {"--emit slurm --explain", "--emit slurm prints a job in place of plans; leave out --explain"},
      {"--emit slurm --deadline-days 3 --train-tokens 1e12", "leave out --train-tokens, --deadline-days"},
      {"--emit slurm --budget 3 --gpu-hour-price 2", "leave out --budget"},
      {"--emit slurm --json", "leave out --json"}};
  for (const auto& [options, says] : kRefused) {
    const CommandResult refused =
        run_command("cd " + folder.path().string() + " && " + app("autoplan") + kDense + options);
    EXPECT_EQ(refused.code, 64) << options << refused.out;
    EXPECT_NE(refused.err.find(says), std::string::npos) << options << '\n' << refused.err;
    EXPECT_FALSE(std::filesystem::exists(folder / "v.html") || std::filesystem::exists(folder / "v.json"));
  }
}

// For this machine's processor, the planner emits a job that starts our program and requests no GPUs.
TEST(AutoplanOutputs, EmitsOurProgramForTheProcessor) {
  const std::string small =
      " --gpu local --global-batch-size 8 --num-layers 2 --hidden-size 64 --num-attention-heads 2 "
      "--seq-length 64 --vocab-size 512 --world-size 2 --device-memory-gb 4 ";
  const CommandResult none = run_command(app("autoplan") + small + "--emit slurm --mtp-num-layers 1");
  EXPECT_EQ(none.code, 64) << none.out;
  EXPECT_NE(none.err.find("M1  this version's trainer has no option for the prediction of further tokens"),
            std::string::npos)
      << none.err;
  for (const char* kind : {"slurm", "k8s", "dlc"}) {
    const CommandResult job = run_command(app("autoplan") + small + "--emit " + kind);
    ASSERT_EQ(job.code, 0) << job.err;
    EXPECT_NE(job.out.find("megalith-pretrain --"), std::string::npos) << job.out;
    for (const char* other : {"pretrain_gpt", "CUDA", "gpu", "GPU"})
      EXPECT_EQ(job.out.find(other), std::string::npos) << other << '\n' << job.out;
    if (std::string(kind) == "slurm") continue;
    const Json object = Json::parse(job.out, kind);
    EXPECT_NE(object.dump().find("\"8Gi\"") == std::string::npos ? object.dump().find("\"7Gi\"") : 0,
              std::string::npos)
        << job.out;
  }
}

TEST(AutoplanOutputs, ReadsTheConfigOfAFolder) {
  const test::TempDir folder;
  write_file(folder / "config.json", test::kLlama8BConfig);
  const auto plan = [&](const std::string& path) {
    return run_command(app("autoplan") +
                       " --gpu h100 --world-size 32 --global-batch-size 128 --json --top 1" + " --hf " +
                       path);
  };
  const CommandResult whole = plan(folder.path().string());
  ASSERT_EQ(whole.code, 0) << whole.err;
  EXPECT_EQ(whole.out, plan(folder / "config.json").out);
  const test::TempDir empty;
  const CommandResult none = plan(empty.path().string());
  EXPECT_EQ(none.code, 66) << none.err;
  EXPECT_NE(none.err.find(empty / "config.json"), std::string::npos) << none.err;
}

std::vector<std::string> lines_of(const std::string& text) {
  return split(trim(text), '\n');
}

std::string line_with(const std::string& text, const std::string& begin) {
  for (const std::string& line : lines_of(text))
    if (line.starts_with(begin)) return line;
  return {};
}

// A newcomer reads fourteen lines, with the figures of --json; --top adds a table, --explain the rest.
TEST(AutoplanOutputs, PrintsTheAnswerFirst) {
  const CommandResult brief = run_command(app("autoplan") + kDense),
                      json = run_command(app("autoplan") + kDense + "--json");
  ASSERT_EQ(brief.code, 0) << brief.err;
  EXPECT_LE(lines_of(brief.out).size(), 14U) << brief.out;
  const Json plan = Json::parse(json.out, "plan")["plans"].as_array().at(0);
  EXPECT_NE(line_with(brief.out, "layout  ").find(concat("tensor ", plan["tensor"].as_int(), ",")),
            std::string::npos)
      << brief.out << plan["options"].as_string();
  EXPECT_NE(line_with(brief.out, "layout  ")
                .find(concat("; micro-batch ", plan["micro_batch"].as_int(), ", global batch 64")),
            std::string::npos)
      << brief.out;
  const auto number = [&](const std::string& line) {
    return parse_double(line.substr(8, line.find(' ', 8) - 8)).value_or(-1);
  };
  EXPECT_NEAR(number(line_with(brief.out, "memory  ")), plan["memory_bytes"]["device"].as_double() / 1e9,
              0.0051);
  const double seconds = plan["step_seconds"].as_double();
  EXPECT_NEAR(number(line_with(brief.out, "time    ")), seconds < 1 ? seconds * 1e3 : seconds, 0.051)
      << brief.out;
  EXPECT_NE(brief.out.find("plan 1 is for Megatron-LM only"), std::string::npos) << brief.out;
  EXPECT_NE(brief.out.find("torchrun --nnodes 2 "), std::string::npos) << brief.out;
  EXPECT_EQ(brief.out.find("srun"), std::string::npos) << brief.out;

  const CommandResult table = run_command(app("autoplan") + kDense + "--top 3");
  EXPECT_NE(table.out.find("\n3  "), std::string::npos) << table.out;
  EXPECT_EQ(table.out.find("\n4  "), std::string::npos) << table.out;
  EXPECT_EQ(table.out.find("memory of plan 1 by pipeline stage"), std::string::npos) << table.out;
  const CommandResult all = run_command(app("autoplan") + kDense + "--explain");
  const size_t tenth = all.out.find("\n10  ");
  ASSERT_NE(tenth, std::string::npos) << all.out;
  EXPECT_LT(all.out.find(line_with(brief.out, "layout  ")), tenth) << all.out;
  for (const char* part :
       {"memory of plan 1 by pipeline stage", "10 % less or more", "srun --nodes 2",
        "fastest plans for less and less memory", "rejected, for example", "fewest devices"})
    EXPECT_NE(all.out.find(part), std::string::npos) << part;
}

// A line without these options would train another model.
TEST(AutoplanOutputs, HaveNoLineOfMegatronForWhatItLacks) {
  const std::string model = app("autoplan") + kDense + "--position-embedding-type rope --parallel-residual ";
  const CommandResult brief = run_command(model);
  EXPECT_EQ(brief.code, 0) << brief.err;
  EXPECT_NE(brief.out.find("no line is written for plan 1: "), std::string::npos) << brief.out;
  EXPECT_NE(brief.out.find("; Megatron-LM has no --parallel-residual\n"), std::string::npos) << brief.out;
  EXPECT_EQ(brief.out.find("pretrain_gpt.py"), std::string::npos) << brief.out;
  const CommandResult job = run_command(model + "--emit slurm");
  EXPECT_EQ(job.code, 64) << job.out;
  EXPECT_NE(job.err.find("--emit writes no job of Megatron-LM, which has no --parallel-residual"),
            std::string::npos)
      << job.err;
}

// The closed forms of the best plan, as text and in JSON, beside what a simulated step counts.
TEST(AutoplanOutputs, ExplainsWhatRanksExchange) {
  const std::string command =
      app("autoplan") +
      " --gpu h100 --software megalith --tensor-model-parallel-size 2 --sharding none --micro-batch-size 1 "
      "--no-sequence-parallel --recompute-granularity none --global-batch-size 4 --num-layers 4 "
      "--hidden-size 256 --num-attention-heads 4 --seq-length 256 --max-position-embeddings 256 "
      "--vocab-size 512 ";
  const CommandResult text = run_command(command + "--world-size 2 --explain"),
                      json = run_command(command + "--world-size 2 --json"),
                      simulated = run_command(command + "--simulate 2 --json");
  for (const CommandResult* result : {&text, &json, &simulated}) ASSERT_EQ(result->code, 0) << result->err;
  EXPECT_NE(text.out.find("what one rank of each pipeline stage gives to its groups in a step of plan 1"),
            std::string::npos)
      << text.out;
  const Json plan = Json::parse(json.out, "plan"), step = Json::parse(simulated.out, "step");
  const Json::Array& formed = plan["traffic"].as_array();
  const Json::Array& counted = step["simulated"].as_array()[0]["traffic"].as_array();
  ASSERT_EQ(formed.size(), 2U) << json.out;
  ASSERT_EQ(counted.size(), formed.size()) << simulated.out;
  for (size_t i = 0; i < formed.size(); ++i) {
    EXPECT_EQ(formed[i]["group"].as_string(), counted[i]["group"].as_string());
    EXPECT_EQ(formed[i]["calls"].as_int(), counted[i]["calls"].as_int());
    EXPECT_NEAR(formed[i]["bytes"].as_double() / counted[i]["bytes"].as_double(), 1, 0.01);
    EXPECT_TRUE(
        test::Pattern(concat(formed[i]["group"].as_string(), " +", formed[i]["calls"].as_int(), " +[0-9.]+ "))
            .is_in(text.out))
        << text.out;
  }
  // Nothing is said of a plan that this version's trainer does not run.
  const CommandResult other = run_command(app("autoplan") + kDense + "--json");
  EXPECT_EQ(other.out.find("\"traffic\""), std::string::npos) << other.out;
}

// Whoever can run the plan comes first: on this machine our program, started directly; the line is run.
TEST(AutoplanOutputs, GivesALineThatRuns) {
  const test::TempDir folder;
  const std::string small =
      " --gpu local --global-batch-size 4 --num-layers 2 --hidden-size 32 --num-attention-heads 2 "
      "--seq-length 16 --max-position-embeddings 16 --vocab-size 64 --device-memory-gb 2 --mock-data "
      "--train-iters 2 --lr 0.01 ";
  for (const std::string ranks : {"", "--world-size 2 "}) {
    const CommandResult plan = run_command(app("autoplan") + small + ranks);
    ASSERT_EQ(plan.code, 0) << plan.err;
    EXPECT_TRUE(plan.out.starts_with("0.028 million parameters on "))
        << plan.out;  // 2 (12 32^2 + 13 32) + 80 32 + 64
    const std::string found = line_with(plan.out, "  megalith"), line(trim(found));
    EXPECT_TRUE(line.starts_with(ranks.empty() ? "megalith-pretrain --num-layers"
                                               : "megalith-pretrain --nproc 2 --num-layers"))
        << plan.out;
    const CommandResult run =
        run_command(concat("cd ", folder.path().string(), " && PATH=", MEGALITH_BINARY_DIR,
                           "/bin:$PATH OMP_WAIT_POLICY=passive ", line, " --log-interval 1"));
    EXPECT_EQ(run.code, 0) << line << run.all();
    EXPECT_NE(run.all().find("iteration        2/       2"), std::string::npos) << run.all();
    const CommandResult all = run_command(app("autoplan") + small + ranks + "--explain");
    EXPECT_EQ(all.out.find("pretrain_gpt.py"), std::string::npos) << "it trains on no processor: " << all.out;
  }
  // A GPU is not what our program takes without an option.
  const CommandResult gpu =
      run_command(app("autoplan") +
                  " --gpu h100 --world-size 1 --global-batch-size 8 --num-layers 4 "
                  "--hidden-size 256 --num-attention-heads 4 --seq-length 256 --vocab-size 512 "
                  "--explain");
  ASSERT_EQ(gpu.code, 0) << gpu.err;
  EXPECT_TRUE(
      trim(line_with(gpu.out, "  megalith")).starts_with("megalith-pretrain --device cuda --num-layers 4 "))
      << gpu.out;
  const size_t ours = gpu.out.find("--no-python megalith-pretrain --device cuda "),
               theirs = gpu.out.find("pretrain_gpt.py");
  EXPECT_LT(ours, theirs) << gpu.out;
  EXPECT_NE(theirs, std::string::npos) << gpu.out;
}

/// A run that is described twice: by a log and by options.
struct Described {
  std::string log, options;
};

/// The predicted seconds per step of the run in the log and of the plan for the options.
std::pair<double, double> step_seconds(const Described& model, const Described& run) {
  const test::TempDir folder;
  write_file(folder / "run.log", log_text(model.log + run.log));
  const CommandResult log =
      run_command(app("autoplan") + model.options + "--json --verify-log " + (folder / "run.log"));
  const CommandResult plan = run_command(app("autoplan") + model.options + run.options +
                                         " --json --top 1 --recompute-granularity none");
  EXPECT_EQ(log.code, 0) << run.log << log.err;
  EXPECT_EQ(plan.code, 0) << run.options << plan.err;
  if (log.code != 0 || plan.code != 0) return {0, 0};
  return {Json::parse(log.out, "log")["step_seconds"]["predicted"].as_double(),
          Json::parse(plan.out, "plan")["plans"].as_array().at(0)["step_seconds"].as_double()};
}

// A log's arguments have the same effect as the options with their names (docs/planner.md).
TEST(AutoplanOutputs, PricesALogAsItsOptions) {
  const Described dense = {
      line_of("tensor_model_parallel_size", "2") + line_of("pipeline_model_parallel_size", "4") +
          line_of("virtual_pipeline_model_parallel_size", "4") + line_of("micro_batch_size", "1") +
          line_of("sequence_parallel", "True") + line_of("use_distributed_optimizer", "True"),
      std::string(kDense) +
          "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --micro-batch-size 1 "
          "--num-layers-per-virtual-pipeline-stage 2 --sequence-parallel --use-distributed-optimizer "
          "--context-parallel-size 1 "};
  const auto [plain, planned] = step_seconds(dense, {});
  EXPECT_DOUBLE_EQ(plain, planned);
  for (const Described& run :
       {Described{line_of("overlap_p2p_comm", "False"), "--no-overlap-p2p-communication"},
        {line_of("overlap_grad_reduce", "False"), "--no-overlap-grad-reduce"},
        {line_of("overlap_param_gather", "False"), "--no-overlap-param-gather"},
        {line_of("tp_comm_overlap", "False"), "--tp-comm-overlap false"},
        {line_of("attention_backend", "AttnBackend.flash"), "--attention-backend flash"},
        {line_of("grad_reduce_in_bf16", "True"), "--grad-reduce-in-bf16"}}) {
    const auto [of_log, of_options] = step_seconds(dense, run);
    EXPECT_DOUBLE_EQ(of_log, of_options) << run.log;
    EXPECT_NE(of_log, plain) << run.log;
  }
  for (const char* exposed : {"overlap_grad_reduce", "overlap_param_gather", "tp_comm_overlap"}) {
    EXPECT_GT(step_seconds(dense, {line_of(exposed, "False"), ""}).first, plain) << exposed;
    EXPECT_EQ(step_seconds(dense, {line_of(exposed, "True"), "--" + option_key(exposed)}),
              std::pair(plain, planned));
  }
}

TEST(AutoplanOutputs, PricesTheExpertsOfALogAsTheirOptions) {
  const Described mixture = {
      line_of("expert_model_parallel_size", "8") + line_of("expert_tensor_parallel_size", "1") +
          line_of("micro_batch_size", "1") + line_of("use_distributed_optimizer", "True"),
      " --gpu h200 --world-size 16 --global-batch-size 64 --num-layers 4 --hidden-size 8192 "
      "--num-attention-heads 64 --seq-length 8192 --vocab-size 32000 --num-experts 8 --disable-bias-linear "
      "--tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --context-parallel-size 1 "
      "--expert-model-parallel-size 8 --expert-tensor-parallel-size 1 --micro-batch-size 1 "
      "--use-distributed-optimizer "};
  const auto [plain, planned] = step_seconds(mixture, {});
  EXPECT_DOUBLE_EQ(plain, planned);
  for (const Described& run :
       {Described{line_of("moe_router_force_load_balancing", "True"), "--moe-router-force-load-balancing"},
        {line_of("moe_expert_capacity_factor", "1.0"), "--moe-expert-capacity-factor 1.0"},
        {line_of("moe_token_dispatcher_type", "allgather"), "--moe-token-dispatcher-type allgather"},
        {line_of("moe_router_load_balancing_type", "['none']") +
             line_of("moe_router_enable_expert_bias", "True"),
         "--moe-router-load-balancing-type none --moe-router-enable-expert-bias"}}) {
    const auto [of_log, of_options] = step_seconds(mixture, run);
    EXPECT_DOUBLE_EQ(of_log, of_options) << run.log;
    EXPECT_NE(of_log, plain) << run.log;
  }
  const test::TempDir folder;
  const auto refusal = [&](const std::string& argument) {
    write_file(folder / "run.log", log_text(mixture.log + argument));
    const CommandResult refused =
        run_command(app("autoplan") + mixture.options + "--verify-log " + (folder / "run.log"));
    EXPECT_GE(refused.code, 64) << argument << refused.out;
    return refused.err;
  };
  EXPECT_NE(
      refusal(line_of("moe_router_load_balancing_type", "none"))
          .find("run.log: --moe-router-load-balancing-type none: how unevenly tokens would then spread"),
      std::string::npos);
  EXPECT_NE(refusal(line_of("moe_token_dispatcher_type", "alltoall_seq")).find("moe_token_dispatcher_type"),
            std::string::npos);
  EXPECT_NE(
      refusal(line_of("moe_layer_recompute", "True")).find("moe_layer_recompute is \"True\", which is not"),
      std::string::npos);
}

/// Bytes of the order of `samples` samples of `length` tokens: 4 for each document of each epoch, 8 for each
/// end of a sample and 4 for each sample (docs/training.md).
int64_t order_bytes(const IndexedDataset& data, int64_t samples, int64_t length) {
  const int64_t epochs = (samples * length + 1 + data.tokens() - 1) / data.tokens();
  const int64_t pieces = (epochs * data.tokens() - 1) / length;
  return 4 * data.sequences() * epochs + 8 * (pieces + 1) + 4 * pieces;
}

TEST(AutoplanOutputs, CountTheOrderOfSamplesOnEachNode) {
  const std::string set = test::test_data("data/goldens/mixed");
  const int64_t bytes = order_bytes(IndexedDataset(set), 1000 * 64, 2048);
  const std::string options = concat(kDense, "--data-path ", set, " --split 1,0,0 --train-iters 1000 ");
  const CommandResult shared = run_command(app("autoplan") + options + "--local-world-size 8 --json");
  ASSERT_EQ(shared.code, 0) << shared.err;
  const Json plan = Json::parse(shared.out, "stdout");
  EXPECT_EQ(plan["node_order_bytes"].as_int(), bytes);
  EXPECT_TRUE(plan["node_order_in_files"].as_bool());
  const CommandResult text = run_command(app("autoplan") + options);
  EXPECT_NE(text.out.find(concat("the order of samples takes ",
                                 format_fixed(static_cast<double>(bytes) / 1e9, 2), " GB of files")),
            std::string::npos)
      << text.out;
  const CommandResult absent = run_command(app("autoplan") + kDense + "--data-path no/such --train-iters 9");
  EXPECT_EQ(absent.code, 0);
  EXPECT_NE(absent.err.find("the memory for the order of samples is not in the plan: no/such"),
            std::string::npos)
      << absent.err;
}

TEST(AutoplanOutputs, LeaveOutAnOrderThatNoRunBuilds) {
  std::string options = kDense;
  const std::string batch = "--global-batch-size 64";
  options.replace(options.find(batch), batch.size(), "--max-global-batch-size 5000000000");
  const test::TempDir folder;
  write_file(folder / "damaged.bin", "");
  write_file(folder / "damaged.idx", "no index");
  for (const auto& [set, reason] :
       {std::pair{test::test_data("data/goldens/mixed"),
                  std::string("19327352823 samples requested; wanted 0 to 4294967296")},  // 9 x (2^31 - 1)
        {folder / "damaged", folder / "damaged.idx"}}) {
    const CommandResult plan =
        run_command(concat(app("autoplan"), options, "--data-path ", set, " --train-iters 9"));
    EXPECT_EQ(plan.code, 0) << plan.err;
    EXPECT_NE(plan.err.find(concat("the memory for the order of samples is not in the plan: ", reason)),
              std::string::npos)
        << plan.err;
  }
}

/// Plans for this machine a run on the 1,437 tokens of a dataset.
std::string plan_here(int64_t global_batch, int steps) {
  return concat(app("autoplan"),
                " --gpu local --num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 512 "
                "--vocab-size 999 --split 1,0,0 --data-path ",
                test::test_data("data/goldens/mixed"), " --global-batch-size ", global_batch,
                " --train-iters ", steps);
}

// An order of 650 GB, about the longest that an index of these tokens may have; a large disk could keep it.
TEST(AutoplanOutputs, RefuseAnOrderThatThisMachineCannotHold) {
  const CommandResult result = run_command("TMPDIR=/nowhere " + plan_here(1'000'000, 4000));
  EXPECT_EQ(result.code, 64);
  EXPECT_NE(result.err.find("the order of samples (documents of all epochs, samples, shuffle) takes "),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("give --data-cache-path DIR"), std::string::npos) << result.err;
}

// A run of one process keeps an order of more than 32 MiB in files; the second here takes 155 MB.
TEST(AutoplanOutputs, CountALargeOrderOfOneProcessAsFiles) {
  const test::TempDir folder;
  if (keeping_in(folder.path()) != Keeping::kOnDisk) GTEST_SKIP() << "temporary files are in memory here";
  const std::string where = concat("TMPDIR=", folder.path().string(), ' ');
  for (const auto& [batch, in_files] : {std::pair{1000, false}, {1'000'000, true}}) {
    const CommandResult plan = run_command(where + plan_here(batch, 1) + " --json");
    ASSERT_EQ(plan.code, 0) << plan.err;
    EXPECT_EQ(Json::parse(plan.out, "stdout")["node_order_in_files"].as_bool(), in_files) << plan.out;
  }
}

}  // namespace
}  // namespace megalith
