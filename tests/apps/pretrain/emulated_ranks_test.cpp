// Ranks that are processes, or threads, each with an emulated GPU of its own, over the fake of NCCL: every
// layout trains as one rank does on the CPU, but for the order of sums.
#include "tests/apps/pretrain/emulated_ranks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/large.h"

namespace megalith::test {
namespace {

const RankLayout kLayouts[] = {
    {"Data2", 2, 1, ""},
    {"Data4", 4, 2, ""},
    {"Zero1", 2, 3, "--use-distributed-optimizer"},
    {"Zero2", 2, 1, "--sharding stage2"},
    {"Tensor2", 2, 2, "--tensor-model-parallel-size 2"},
    {"TensorSequence2", 2, 3, "--tensor-model-parallel-size 2 --sequence-parallel"},
    {"Pipeline2", 2, 1, "--pipeline-model-parallel-size 2"},
    {"Pipeline4", 4, 2, "--pipeline-model-parallel-size 4"},
    {"Interleaved2", 2, 3, "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1"},
    {"Context2", 2, 1, "--context-parallel-size 2"},
    {"Data2Tensor2Pipeline2", 8, 2, "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2"},
};

class EmulatedLayouts : public EmulatedRanksApp, public testing::WithParamInterface<RankLayout> {
 protected:
  void expect_same_in(const std::vector<int>& orders, const std::string& steps = "") const {
    expect_same_as_one(kLonger + steps, orders, [&](const std::string& options) {
      return train_on_gpus(GetParam().ranks, concat(steps, GetParam().options, options));
    });
  }
};
INSTANTIATE_TEST_SUITE_P(All, EmulatedLayouts, testing::ValuesIn(kLayouts),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(EmulatedLayouts, TrainAsOneRankOnTheCpuDoes) {
  expect_same_in({GetParam().order}, "--train-iters 3 --eval-interval 2 ");
}
TEST_P(EmulatedLayouts, TrainAlikeInThreeOrdersOfWork) {
  if (!large_tests_wanted()) GTEST_SKIP() << kOnlyAmongLargeTests;
  expect_same_in({1, 2, 3});
}

/// Each kind of parallelism among 4 and 8 ranks, and a model that can be divided so. (Those of 2 are above.)
const RankLayout kWideLayouts[] = {
    {"Data8", 8, 0, ""},
    {"Zero1x4", 4, 0, "--use-distributed-optimizer"},
    {"Zero1x8", 8, 0, "--use-distributed-optimizer"},
    {"Zero2x4", 4, 0, "--sharding stage2"},
    {"Zero2x8", 8, 0, "--sharding stage2"},
    {"Tensor4", 4, 0, "--tensor-model-parallel-size 4"},
    {"Tensor8", 8, 0, "--tensor-model-parallel-size 8"},
    {"TensorSequence4", 4, 0, "--tensor-model-parallel-size 4 --sequence-parallel"},
    {"TensorSequence8", 8, 0, "--tensor-model-parallel-size 8 --sequence-parallel"},
    {"Pipeline8", 8, 0, "--pipeline-model-parallel-size 8"},
    {"Interleaved4", 4, 0, "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 1"},
    {"Interleaved8", 8, 0,
     "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 1 --sharding stage1"},
    {"Context4", 4, 0, "--context-parallel-size 4"},
    {"Context8", 8, 0, "--context-parallel-size 8"},
};

class WideLayouts : public EmulatedLayouts {};
INSTANTIATE_TEST_SUITE_P(All, WideLayouts, testing::ValuesIn(kWideLayouts),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(WideLayouts, TrainAlikeInThreeOrdersOfWork) {
  if (!large_tests_wanted()) GTEST_SKIP() << kOnlyAmongLargeTests;
  expect_same_in({1, 2, 3},
                 "--num-layers 8 --num-attention-heads 8 --seq-length 16 --max-position-embeddings 16 "
                 "--global-batch-size 8 --train-iters 3 --eval-interval 2 ");
}

// Each thread has its own device of the one process.
TEST_F(EmulatedRanksApp, ThreadsTrainAsOneRankOnTheCpuDoes) {
  for (const std::string layout : {"--nproc 2", "--nproc 2 --pipeline-model-parallel-size 2"})
    expect_same_as_one(kLonger, {2}, [&](const std::string& options) {
      return train(kLonger + layout + " --device cuda" + options);
    });
}

TEST_F(EmulatedRanksApp, AddInRankOrderIfAsked) {
  const Start plain = [this](const std::string& options) { return train_on_gpus(4, options); };
  const Start in_rank_order = [&](const std::string& options) {
    return plain("--deterministic-collectives" + options);
  };
  const std::vector<double> one = norms(1, in_rank_order);
  ASSERT_EQ(one.size(), 5);
  EXPECT_EQ(norms(2, in_rank_order), one);
  EXPECT_EQ(norms(3, in_rank_order), one);
  EXPECT_NE(norms(1, plain), one) << "the fake's own order is another";
}

/// Calls and bytes, by group.
using Traffic = std::map<std::string, std::pair<int64_t, int64_t>>;

class EmulatedTraffic : public EmulatedRanksApp {
 protected:
  /// Some ranks of a run; empty: all of them.
  using Some = std::set<int64_t>;
  /// What a step of the ranks of a run gives to NCCL: the difference between two runs.
  Traffic of_a_step(int ranks, const std::string& options, const Some& some = {}) const {
    Traffic step = given(ranks, options, 2, some);
    for (const auto& [group, before] : given(ranks, options, 1, some)) {
      step[group].first -= before.first;
      step[group].second -= before.second;
    }
    return step;
  }
  /// What the ranks of a run of so many steps give to NCCL.
  Traffic given(int ranks, const std::string& options, int steps, const Some& some = {}) const {
    const Variable counts("MEGALITH_NCCL_COUNTS", dir_ / "counts.jsonl");
    const CommandResult result = run(concat(options, " --mock-data --lr 0.01 --eval-iters 0 --threads 1 ",
                                            "--device cuda --train-iters ", steps, " --nproc ", ranks));
    EXPECT_EQ(result.code, 0) << result.all();
    Traffic sum;
    for (const Json& one : json_lines(file("counts.jsonl"), "counts.jsonl"))
      if (some.empty() || some.contains(one["rank"].as_int())) add(one, 1, sum[one["group"].as_string()]);
    std::filesystem::remove(dir_ / "counts.jsonl");
    return sum;
  }
  /// What a simulated step says of one rank of each stage, `alike` times. `shared`: a group of all ranks,
  /// which calls the world's group of NCCL.
  Traffic simulated(int ranks, const std::string& options, int alike, const std::string& shared) const {
    const CommandResult result =
        run_command(concat(app("autoplan"), " --gpu h100 --software megalith --recompute-granularity none ",
                           "--json --simulate ", ranks, ' ', options));
    EXPECT_EQ(result.code, 0) << result.all();
    Traffic sum;
    const Json plan = Json::parse(result.out, "plan");
    for (const Json& one : plan["simulated"].as_array()[0]["traffic"].as_array()) {
      const std::string& group = one["group"].as_string();
      add(one, alike, sum[group == shared ? "world" : group]);
    }
    return sum;
  }
  const std::string kStep =
      "--num-layers 2 --hidden-size 16 --num-attention-heads 2 --seq-length 12 --max-position-embeddings 12 "
      "--vocab-size 61 --micro-batch-size 1 --global-batch-size 4 --bf16 --attention-dropout 0 "
      "--hidden-dropout 0 ";

 private:
  static void add(const Json& one, int times, std::pair<int64_t, int64_t>& sum) {
    sum.first += times * one["calls"].as_int();
    sum.second += times * one["bytes"].as_int();
  }
};

TEST_F(EmulatedTraffic, OfEachGroupIsThatOfASimulatedStep) {
  const EmulatedGpus gpus(1);
  // Two layers, but four where a stage has two chunks.
  const std::string tensor = "--tensor-model-parallel-size 2 --sharding none ",
                    pipeline = "--pipeline-model-parallel-size 2 --sharding none --num-layers 4 ",
                    unsplit = "--no-sequence-parallel ";
  for (const auto& [ranks, layout, alike, shared] :
       {std::tuple{2, tensor + unsplit, 2, "tensor"},
        {2, tensor + "--sequence-parallel", 2, "tensor"},
        {2, pipeline + "--num-layers-per-virtual-pipeline-stage 2", 1, "embedding"},
        {2, pipeline + "--num-layers-per-virtual-pipeline-stage 1", 1, "embedding"},
        {2, "--context-parallel-size 2 --sharding none", 2, "data"},
        {2, "--sharding stage1", 2, "data"},
        {2, "--sharding stage2", 2, "data"},
        {8, tensor + pipeline + unsplit + "--num-layers-per-virtual-pipeline-stage 2", 4, ""}}) {
    EXPECT_EQ(of_a_step(ranks, kStep + layout), simulated(ranks, kStep + layout, alike, shared)) << layout;
  }
}

// Ranks then send each other parts that need not be equal, so only the ranks that are simulated count: the
// first of each stage. --explain prints the closed forms, which StepTraffic compares in more layouts.
TEST_F(EmulatedTraffic, OfSumsInRankOrderIsThatOfASimulatedStep) {
  const EmulatedGpus gpus(1);
  const std::string ordered = kStep + "--deterministic-collectives ",
                    tensor = "--tensor-model-parallel-size 2 --sharding none ";
  for (const auto& [ranks, layout, some, shared] :
       {std::tuple{2, tensor + "--sequence-parallel", Some{0}, "tensor"},
        {2, "--context-parallel-size 2 --sharding none", {0}, "data"},
        {2, "--sharding stage2", {0}, "data"},
        {8,
         tensor + "--no-sequence-parallel --pipeline-model-parallel-size 2 --num-layers 4 "
                  "--num-layers-per-virtual-pipeline-stage 2",
         {0, 4},
         ""}})
    EXPECT_EQ(of_a_step(ranks, ordered + layout, some), simulated(ranks, ordered + layout, 1, shared))
        << layout;
}

// By hand: rows of [128, 16, 2048] in bf16 are 8 MiB, which two ranks exchange in two pieces. Without
// sequence parallelism the layer's four sums are, and those of the embedding and the head; beside them are
// three sums of losses and one of the step's figures.
TEST_F(EmulatedTraffic, OfExchangesInPiecesIsThatOfASimulatedStep) {
  const EmulatedGpus gpus(2);
  const std::string wide =
      "--num-layers 1 --hidden-size 2048 --ffn-hidden-size 32 --num-attention-heads 2 --kv-channels 8 "
      "--seq-length 128 --max-position-embeddings 128 --vocab-size 61 --micro-batch-size 16 "
      "--global-batch-size 16 --bf16 --attention-dropout 0 --hidden-dropout 0 --sharding none "
      "--tensor-model-parallel-size 2 ";
  for (const std::string sequence : {"--no-sequence-parallel", "--sequence-parallel"}) {
    const Traffic step = given(2, wide + sequence, 1);  // such a run exchanges nothing before its step
    EXPECT_EQ(step, simulated(2, wide + sequence, 2, "tensor")) << sequence;
    if (sequence == "--no-sequence-parallel") {
      EXPECT_EQ(step.at("world").first, 2 * ((4 + 2) * 2 + 3 + 1));
    }
  }
}

// The layout may change, and so may the order of work.
TEST_F(EmulatedRanksApp, ResumeUnderAnotherLayout) {
  const auto sharded = [this](const std::string& options) {
    const EmulatedGpus gpus(1);
    return train_on_gpus(2, "--use-distributed-optimizer" + options);
  };
  const auto tensor = [this](const std::string& options) {
    const EmulatedGpus gpus(3);
    return train_on_gpus(4, "--tensor-model-parallel-size 2" + options);
  };
  expect_same_when_resumed(kLonger, sharded, tensor);
}

TEST_F(EmulatedRanksApp, LogWhatChangesWhatNcclDoes) {
  const EmulatedGpus gpus(1, 2);
  const Variable algorithm("NCCL_ALGO", "Ring"), queues("CUDA_DEVICE_MAX_CONNECTIONS", "1");
  const auto expect = [&](const std::string& loading) {
    const CommandResult ranks = train(kLonger + "--train-iters 1 --eval-iters 0 --nproc 2 --device cuda");
    EXPECT_EQ(ranks.code, 0) << ranks.all();
    EXPECT_NE(ranks.all().find("> NCCL 2.28.9; network interfaces here: "), std::string::npos) << ranks.all();
    EXPECT_NE(ranks.all().find("> variables for NCCL: CUDA_DEVICE_MAX_CONNECTIONS=1, CUDA_MODULE_LOADING=" +
                               loading + ", NCCL_ALGO=Ring; NCCL_ALGO may change the order of sums"),
              std::string::npos)
        << ranks.all();
  };
  expect("EAGER");
  const Variable lazy("CUDA_MODULE_LOADING", "LAZY");
  expect("LAZY");
}

// Two threads connect to each other, in each of the two directions of a pipeline's links, and in the group of
// both for the step's figures; a process sees its own connections alone. Rank 0 sends forward.
TEST_F(EmulatedRanksApp, LogTheTransportsOfNcclsConnections) {
  const EmulatedGpus gpus(1, 2);
  const std::string options = "--pipeline-model-parallel-size 2 --train-iters 2 --eval-iters 0 ";
  const CommandResult threads = train(kLonger + options + "--nproc 2 --device cuda");
  EXPECT_EQ(threads.code, 0) << threads.all();
  const std::string line = " > NCCL's connections: ";
  const auto count = [&](const CommandResult& result, const std::string& text) {
    size_t found = 0;
    for (size_t at = result.all().find(text); at != std::string::npos; at = result.all().find(text, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count(threads, line + "4 by SHM/direct/direct"), 1) << threads.all();
  const CommandResult processes = train_on_gpus(2, options);
  EXPECT_EQ(processes.code, 0) << processes.all();
  EXPECT_NE(file("logs/workerlog.0").find(line + "2 by SHM/direct/direct"), std::string::npos);
  EXPECT_EQ(file("logs/workerlog.1").find(line), std::string::npos);

  // A user's own settings stay: NCCL then says it where the user wants it.
  const Variable level("NCCL_DEBUG", "INFO"), own("NCCL_DEBUG_FILE", dir_ / "nccl.log");
  const CommandResult by_user = train(kLonger + options + "--nproc 2 --device cuda");
  EXPECT_EQ(by_user.code, 0) << by_user.all();
  EXPECT_EQ(count(by_user, line), 0) << by_user.all();
  EXPECT_NE(by_user.all().find("NCCL_DEBUG=INFO, NCCL_DEBUG_FILE="), std::string::npos) << by_user.all();
  EXPECT_NE(file("nccl.log").find(" via SHM/direct/direct"), std::string::npos);
}

// A save passes through page-locked memory while the next step runs, and --trace waits for events.
TEST_F(EmulatedRanksApp, SaveBesideTrainingAndTrace) {
  const EmulatedGpus gpus(2);
  const std::string options = "--use-distributed-optimizer --save-interval 2 ";
  for (const std::string way : {"--async-save", "--no-async-save"}) {
    const CommandResult ranks =
        train_on_gpus(2, options + way + " --save s" + way +
                             " --profile-step-start 1 --profile-step-end 4 --trace trace" + way + ".json");
    ASSERT_EQ(ranks.code, 0) << ranks.all();
  }
  for (const std::string iteration : {"/iter_0000002", "/iter_0000004", "/iter_0000005"}) {
    const auto beside = checkpoint_contents(dir_ / ("s--async-save" + iteration));
    EXPECT_FALSE(beside.empty());
    EXPECT_EQ(beside, checkpoint_contents(dir_ / ("s--no-async-save" + iteration)));
  }
  const std::string trace = file("trace--async-save.json");
  for (const char* rank : {"0", "1"})
    EXPECT_TRUE(Pattern(concat("\"F0.0\".*\"ph\": \"X\".*\"pid\": ", rank)).is_in(trace))
        << trace.substr(0, 3000);
}

// The first rank writes them, of all parameters, while the others wait. Losses of CPU and GPUs differ by
// roundings, which change no likeliest token here.
TEST_F(EmulatedRanksApp, WriteTheSamplesOfOneRankOnTheCpu) {
  const EmulatedGpus gpus_here(3);
  const std::string model = replaced(kModel, "--vocab-size 61 ", "") + kLonger +
                            "--train-iters 4 --eval-interval 2 --sample-prompt 'The first' --sample-tokens 8 "
                            "--tokenizer-type HuggingFaceTokenizer --tokenizer-model " +
                            test_data("text/goldens/trained/tokenizer.json");
  const auto texts = [&](const std::string& options) {
    std::filesystem::remove(dir_ / "log.jsonl");
    const CommandResult result = run(concat(model, " --log-json log.jsonl ", options));
    EXPECT_EQ(result.code, 0) << result.all();
    std::vector<std::string> all;
    for (const Json& line : lines("log.jsonl", "sample")) all.push_back(line["text"].as_string());
    return all;
  };
  const std::vector<std::string> one = texts("");
  EXPECT_EQ(one.size(), 2U);
  EXPECT_EQ(texts("--device cuda --use-distributed-optimizer --log-dir logs --gpus " + gpus(2)), one);
}

// A context on a device takes hundreds of megabytes of its memory.
TEST_F(EmulatedRanksApp, UseTheirOwnDeviceAlone) {
  const EmulatedGpus gpus(1, 2);
  const Variable contexts("MEGALITH_EMULATOR_CONTEXTS", dir_ / "contexts");
  const CommandResult ranks = train_on_gpus(2, "");
  ASSERT_EQ(ranks.code, 0) << ranks.all();
  std::vector<std::string> used = split(trim(file("contexts")), '\n');
  std::sort(used.begin(), used.end());
  EXPECT_EQ(used, (std::vector<std::string>{"0", "1"}));
}

TEST_F(EmulatedRanksApp, NameTheRankWhoseDeviceIsFull) {
  const EmulatedGpus gpus(1, 2);
  constexpr size_t kMemory = size_t{16} << 30, kLeft = size_t{72} << 20;
  const Variable taken("MEGALITH_EMULATOR_TAKEN", concat("1:", kMemory - kLeft));
  const CommandResult ranks = train_on_gpus(2, "--hidden-size 512 --ffn-hidden-size 8192");
  const std::string log = ranks.all() + file("logs/workerlog.0");
  EXPECT_EQ(ranks.code, 64) << log;
  EXPECT_TRUE(Pattern("rank 1 needs .* of device memory .*NCCL's buffers 384.00 MiB.*, its device has "
                      "40.00 MiB left")
                  .is_in(log))
      << log;
}

// By hand: of all ranks, which serves a tensor or data group of all of them; two of context ranks; of both
// ends of a pipeline of three, and of each direction of its links. The last layout has links from the last
// stage to the first one.
TEST_F(EmulatedRanksApp, OpenTheCommunicatorsOfTheirGroups) {
  const EmulatedGpus gpus(1);
  const Variable counts("MEGALITH_NCCL_COUNTS", dir_ / "counts.jsonl");
  for (const auto& [ranks, layout, opened] :
       {std::tuple{2, "", std::map<int64_t, int>{{0, 1}, {1, 1}}},
        {2, "--tensor-model-parallel-size 2", {{0, 1}, {1, 1}}},
        {2, "--context-parallel-size 2", {{0, 3}, {1, 3}}},
        {3, "--pipeline-model-parallel-size 3 --pipeline-layers 1,2,1", {{0, 4}, {1, 5}, {2, 4}}},
        {2,
         "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1",
         {{0, 5}, {1, 5}}}}) {
    const CommandResult result =
        train(concat(kLonger, layout, " --train-iters 1 --eval-iters 0 --device cuda --nproc ", ranks));
    ASSERT_EQ(result.code, 0) << result.all();
    std::map<int64_t, int> communicators;
    for (const Json& one : json_lines(file("counts.jsonl"), "counts.jsonl"))
      ++communicators[one["rank"].as_int()];
    EXPECT_EQ(communicators, opened) << layout;
    std::filesystem::remove(dir_ / "counts.jsonl");
  }
}

TEST_F(EmulatedRanksApp, CarryNoTensorsOverGloo) {
  const EmulatedGpus gpus(1, 2);
  const CommandResult refused = train(kLonger + "--nproc 2 --device cuda --distributed-backend gloo");
  EXPECT_EQ(refused.code, 64) << refused.all();
  EXPECT_NE(refused.err.find("--distributed-backend gloo and --device cuda contradict each other"),
            std::string::npos)
      << refused.all();
  const std::string replaced = "nccl is for GPUs";
  const CommandResult on_gpus = train(kLonger + "--nproc 2 --device cuda --distributed-backend nccl");
  EXPECT_EQ(on_gpus.code, 0) << on_gpus.all();
  EXPECT_EQ(on_gpus.all().find(replaced), std::string::npos) << on_gpus.all();
  const CommandResult on_cpus = train(kLonger + "--nproc 2 --distributed-backend nccl");
  EXPECT_EQ(on_cpus.code, 0) << on_cpus.all();
  EXPECT_NE(on_cpus.all().find(replaced), std::string::npos) << on_cpus.all();
}

// The last of the five calls of rank 1, after the sums of two buckets and of the step's figures, is the
// gather of the second bucket's parameters, which no later pass reads. The fake counts from 0.
TEST_F(EmulatedRanksApp, NameAGatherThatDoesNotEndAfterTheLastStep) {
  const EmulatedGpus gpus(1);
  const Variable fault("MEGALITH_NCCL_FAULT", "hang:1:4");
  const CommandResult result =
      train(kLonger + "--nproc 2 --device cuda --use-distributed-optimizer --train-iters 1 --eval-iters 0 " +
            "--distributed-timeout-seconds-after-init 10 --log-json log.jsonl");
  EXPECT_EQ(result.code, 75) << result.all();
  EXPECT_EQ(figures("log.jsonl", "train").size(), 1) << "the step itself ends: " << result.all();
  EXPECT_TRUE(Pattern("data: rank [01]: all_gather, call 4: timed out after 10 s").is_in(result.err))
      << result.all();
}

TEST_F(EmulatedRanksApp, NeedADeviceEach) {
  const EmulatedGpus gpus(1, 2);
  const CommandResult few = train(kLonger + "--nproc 4 --device cuda");
  EXPECT_EQ(few.code, 69) << few.all();
  EXPECT_NE(
      few.err.find("rank 2 has no device: it is number 2 of its machine's ranks, and there are 2 devices"),
      std::string::npos)
      << few.all();
  const Variable same("CUDA_VISIBLE_DEVICES", "1");
  const CommandResult shared =
      train(kLonger + "--device cuda --log-dir logs --nnodes 1 --node_rank 0 --nproc_per_node 2");
  EXPECT_EQ(shared.code, 69) << shared.all();
  const std::string log = file("logs/workerlog.0");
  EXPECT_NE(log.find("have the same device, 0000:01:00.0; each needs its own"), std::string::npos) << log;
}

}  // namespace
}  // namespace megalith::test
