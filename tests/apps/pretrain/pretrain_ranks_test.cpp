// Tests ranks that are processes, started as each launcher starts them.
#include "tests/apps/pretrain/pretrain_ranks.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {
namespace {

TEST_F(PretrainRanks, OfAPlainEnvironmentGiveOneRanksLosses) {
  expect_one_rank("RANK=%r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(free_port()));
  const std::string log = file("log.0");
  EXPECT_NE(log.find("using world size: 2, data-parallel size: 2"), std::string::npos) << log;
  EXPECT_TRUE(test::Pattern(" > rank 1: .* \\(127\\.0\\.0\\.1\\), cpu with [0-9]+ cores?, "
                            "tensor 0, pipeline 0, data 1\n")
                  .is_in(log))
      << log;
}

TEST_F(PretrainRanks, OfMpirunGiveOneRanksLosses) {
  expect_one_rank(
      "OMPI_COMM_WORLD_RANK=%r OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=%r "
      "OMPI_COMM_WORLD_LOCAL_SIZE=2 "
      "MASTER_PORT=" +
      std::to_string(free_port()));
}

TEST_F(PretrainRanks, OfSrunGiveOneRanksLosses) {
  expect_one_rank(
      "SLURM_PROCID=%r SLURM_NTASKS=2 SLURM_LOCALID=%r SLURM_STEP_ID=0 SLURM_JOB_ID=77 "
      "SLURM_LAUNCH_NODE_IPADDR=127.0.0.1 MASTER_PORT=" +
      std::to_string(free_port()));
}

TEST_F(PretrainRanks, OfPaddlesLauncherGiveOneRanksLosses) {
  const std::string port = std::to_string(free_port());
  expect_one_rank("PADDLE_TRAINER_ID=%r PADDLE_TRAINERS_NUM=2 PADDLE_TRAINER_ENDPOINTS=127.0.0.1:" + port +
                  ",127.0.0.1:" + port);
}

TEST_F(PretrainRanks, OfARankTableGiveOneRanksLosses) {
  write_file(dir_ / "table.json",
             R"({"server_list": [{"server_id": "127.0.0.1", "device": [{"device_id": "0", "rank_id": "0"},
                {"device_id": "1", "rank_id": "1"}]}], "status": "completed"})");
  expect_one_rank("RANK_ID=%r RANK_SIZE=2 RANK_TABLE_FILE=table.json MASTER_PORT=" +
                  std::to_string(free_port()));
}

// Threads and processes must give the same bits in every layout. One trace covers all ranks.
TEST_F(PretrainRanks, GiveTheBitsOfThreads) {
  for (const std::string cut :
       {"--tensor-model-parallel-size 2 --sequence-parallel", "--pipeline-model-parallel-size 2",
        "--use-distributed-optimizer", "--context-parallel-size 2"}) {
    const CommandResult threads = train(cut + " --nproc 2 --log-json threads.jsonl");
    ASSERT_EQ(threads.code, 0) << threads.all();
    ASSERT_EQ(start("RANK=%r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(free_port()),
                    cut + " --log-json processes.jsonl --trace trace.json"),
              0)
        << file("log.0") << file("log.1");
    const std::vector<Json> a = lines("threads.jsonl", "train"), b = lines("processes.jsonl", "train");
    ASSERT_EQ(a.size(), 20U);
    ASSERT_EQ(b.size(), 20U);
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i]["loss"].dump(), b[i]["loss"].dump()) << cut << i;
      EXPECT_EQ(a[i]["grad_norm"].dump(), b[i]["grad_norm"].dump()) << cut << i;
    }
    const std::string trace = read_file(dir_ / "trace.json");
    EXPECT_NE(trace.find("\"rank 0: "), std::string::npos) << cut;
    EXPECT_NE(trace.find("\"rank 1: "), std::string::npos) << cut;
    std::filesystem::remove(dir_ / "threads.jsonl");
    std::filesystem::remove(dir_ / "processes.jsonl");
  }
}

TEST_F(PretrainRanks, AreStartedByGpusAndKeepALogEach) {
  const CommandResult result = train("--gpus 4,5 --log_dir logs");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_EQ(losses(result.all()), one_rank());
  EXPECT_EQ(losses(file("logs/workerlog.0")), losses(result.all()));
  EXPECT_EQ(losses(file("logs/workerlog.1")), losses(result.all()));  // rank 1's lines, for the same steps
  ASSERT_EQ(train("--gpus 0 --train-iters 5").code, 0);
  EXPECT_TRUE(file_exists(dir_ / "log/workerlog.0"));  // the folder that Paddle's launcher uses
}

// Messages about the command line itself appear once, not once for each rank.
TEST_F(PretrainRanks, SayOnceWhatIsIgnored) {
  const std::string options = "--model_type gpt --seed 3--log-interval 10 --train-iters 5 ";
  ASSERT_EQ(
      start("RANK=%r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(free_port()), options),
      0)
      << file("log.0") << file("log.1");
  EXPECT_NE(file("log.0").find("ignored, no effect here: --model_type"), std::string::npos) << file("log.0");
  EXPECT_NE(file("log.0").find("was read as two words"), std::string::npos) << file("log.0");
  EXPECT_EQ(file("log.1"), "");
  const CommandResult both = train(options + "--gpus 4,5");
  ASSERT_EQ(both.code, 0) << both.all();
  for (const char* said : {"ignored, no effect here", "was read as two words"}) {
    const size_t first = both.all().find(said);
    ASSERT_NE(first, std::string::npos) << both.all();
    EXPECT_EQ(both.all().find(said, first + 1), std::string::npos) << both.all();
  }
}

// Two servers on one machine: each command line starts its own ranks.
TEST_F(PretrainRanks, AreStartedByACommandLineOnEachServer) {
  const std::string port = std::to_string(free_port());
  EXPECT_EQ(
      start("", "--nnodes 2 --node_rank %r --nproc_per_node 1 --master_addr 127.0.0.1 --master_port " + port),
      0)
      << file("log.0") << file("log.1");
  EXPECT_EQ(losses(file("log.0")), one_rank());
}

TEST_F(PretrainRanks, OfServersThatDlcCountsGiveOneRanksLosses) {
  const std::string port = std::to_string(free_port());
  EXPECT_EQ(start("RANK=%r WORLD_SIZE=2 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port,
                  "--task-type llmacc.megatron.GPT"),
            0)
      << file("log.0") << file("log.1");
  EXPECT_EQ(losses(file("log.0")), one_rank());
}

TEST_F(PretrainRanks, NameTheRankAndTheOptionThatDiffer) {
  EXPECT_EQ(start("RANK=%r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(free_port()),
                  "--seed %r"),
            64);
  for (const char* log : {"log.0", "log.1"})
    EXPECT_NE(file(log).find("--seed is 0 on rank 0 and 1 on rank 1"), std::string::npos) << file(log);
}

// The ranks may name the data by different paths, but the contents must be the same.
TEST_F(PretrainRanks, MayBeGivenOtherPathsOfTheSameData) {
  for (const char* name : {"r0", "r1"})
    for (const char* ending : {".bin", ".idx"})
      std::filesystem::copy(dir_ / concat("c", ending), dir_ / concat(name, ending));
  const auto run_with = [&](const std::string& options) {
    const std::string model = test::replaced(kModel, "--data-path c ", "--data-path r%r ");
    return start_model(
        model, "RANK=%r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(free_port()),
        options);
  };
  EXPECT_EQ(run_with("--log-json figures.%r --data-cache-path cache%r"), 0) << file("log.0") << file("log.1");
  EXPECT_EQ(losses(file("log.0")), one_rank());
  std::string ids = read_file(dir_ / "r1.bin");  // changed ids, same size and index
  std::swap_ranges(ids.begin(), ids.begin() + 8, ids.end() - 8);
  write_file(dir_ / "r1.bin", ids);
  const int altered = run_with("");
  EXPECT_TRUE(altered == 65 || altered == 75) << altered;
  EXPECT_NE(
      (file("log.0") + file("log.1")).find(".bin has other contents in the 4096 bytes from byte 0 on rank 1"),
      std::string::npos)
      << file("log.0") << file("log.1");
  IndexedDatasetWriter other(dir_ / "r1", optimal_dtype(61));
  for (int document = 0; document < 30; ++document)
    other.add_document(std::vector<int32_t>(100, document), std::vector<int32_t>{100});
  other.finish();
  // Both ranks detect the difference and exit with 65, unless one first learns that the other has ended: it
  // exits with 75.
  const int code = run_with("");
  EXPECT_TRUE(code == 65 || code == 75) << code;
  const std::string logs = file("log.0") + file("log.1");
  EXPECT_NE(logs.find("the data and the tokenizer's files of rank 0 are 2780 tokens in 40 sequences"),
            std::string::npos)
      << logs;
  EXPECT_NE(logs.find("those of rank 1 3000 tokens in 30 sequences"), std::string::npos) << logs;
}

// One dataset of rank 1 holds other ids of the same size; whichever option names it, the run is refused.
TEST_F(PretrainRanks, CompareTheDataOfEveryOption) {
  for (const char* name : {"r0", "r1"})
    for (const char* ending : {".bin", ".idx"})
      std::filesystem::copy(dir_ / concat("c", ending), dir_ / concat(name, ending));
  std::string ids = read_file(dir_ / "r1.bin");
  std::swap_ranges(ids.begin(), ids.begin() + 8, ids.end() - 8);
  write_file(dir_ / "r1.bin", ids);
  for (const std::string data :
       {"--data-path c r%r", "--data-path 1 c 1 r%r", "--train-data-path r%r --valid-data-path c",
        "--train-data-path c r%r", "--train-data-path c --valid-data-path r%r",
        "--train-data-path c --valid-data-path 1 c 2 r%r",
        "--train-data-path c --valid-data-path c --test-data-path r%r",
        "--train-data-path c --test-data-path c r%r"}) {
    const std::string model = test::replaced(kModel, "--data-path c ", data + " ");
    const int code = start_model(
        model, "RANK=%r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(free_port()), "");
    EXPECT_TRUE(code == 65 || code == 75) << data << ": " << code;
    const std::string logs = file("log.0") + file("log.1");
    EXPECT_NE(logs.find(".bin has other contents in the 4096 bytes from byte 0 on rank 1"), std::string::npos)
        << data << ": " << logs;
    EXPECT_EQ(logs.find("training ..."), std::string::npos) << data;
  }
}

// The folders of --load hold checkpoints of the same step and of the same shapes, but of two runs.
TEST_F(PretrainRanks, CompareTheCheckpointsOfEveryFormat) {
  for (const std::string format : {"megalith", "torch", "pth", "hf"}) {
    for (const std::string rank : {"0", "1"}) {
      const std::string folder = format == "hf" ? "megalith" + rank : format + rank;
      if (format == "hf")
        ASSERT_EQ(run_command("cd " + dir_.path().string() + " && " + app("convert") + " megalith" + rank +
                              " --to hf --output hf" + rank)
                      .code,
                  0);
      else
        ASSERT_EQ(
            train("--train-iters 5 --save " + folder + " --ckpt-format " + format + " --seed " + rank).code,
            0);
    }
    const int code =
        start("RANK=%r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(free_port()),
              "--load " + format + "%r");
    EXPECT_TRUE(code == 65 || code == 75) << format << ": " << code;
    const std::string logs = file("log.0") + file("log.1");
    EXPECT_NE(logs.find("--load \"" + format), std::string::npos) << format << ": " << logs;
    EXPECT_NE(logs.find(" has other contents on rank 1 than on rank 0; give every machine the same files"),
              std::string::npos)
        << format << ": " << logs;
    EXPECT_EQ(logs.find("training ..."), std::string::npos) << format;
    std::filesystem::copy(dir_ / format + "0", dir_ / "copy0", std::filesystem::copy_options::recursive);
    std::filesystem::copy(dir_ / format + "0", dir_ / "copy1", std::filesystem::copy_options::recursive);
    EXPECT_EQ(start("RANK=%r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(free_port()),
                    "--load copy%r --override-opt_param-scheduler"),
              0)
        << format << file("log.0") << file("log.1");
    for (const char* copy : {"copy0", "copy1"}) std::filesystem::remove_all(dir_ / copy);
  }
}

TEST_F(PretrainRanks, SaveWhenASignalComesToOneOfThem) {
  const std::string port = std::to_string(free_port());
  const std::string options =
      kModel + "--train-iters 100000 --eval-iters 0 --save s --load s --log-json s.jsonl ";
  const CommandResult result = run_command(
      "cd " + dir_.path().string() + " && export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
      "; RANK=0 " + app("pretrain") + " " + options + " >log.0 2>&1 & a=$!; RANK=1 " + app("pretrain") + " " +
      options + " >log.1 2>&1 & b=$!; " +
      "until grep -q train s.jsonl 2>/dev/null || ! kill -0 $a; do sleep 0.05; done; "
      "kill -TERM $b; wait $a; x=$?; wait $b; echo $x $?");
  EXPECT_EQ(result.out, "75 75\n") << file("log.0") << file("log.1");
  EXPECT_NE(file("log.0").find("stopped by SIGTERM; saved; run the same command to resume"),
            std::string::npos)
      << file("log.0");
}

// Ctrl-C sends SIGINT to the command and to its ranks, and the command also passes it on. A rank must not
// count that as a second Ctrl-C. A program may send it to the command alone.
TEST_F(PretrainRanks, SaveWhenATerminalInterruptsAllOfThem) {
  for (const char* to : {"-$a", "$a"}) {
    const CommandResult result = run_command(
        "cd " + dir_.path().string() + " && rm -f s.jsonl\nsetsid " + app("pretrain") + " " + kModel +
        "--gpus 0,1 --train-iters 100000 --eval-iters 0 --save s --load s --log-json s.jsonl >err "
        "2>&1 & a=$!; " +
        "until grep -q train " + (dir_ / "s.jsonl") +
        " 2>/dev/null || ! kill -0 $a; do sleep 0.05; done; kill -INT " + to + "; wait $a; echo $?");
    EXPECT_EQ(result.out, "75\n") << file("err");
    EXPECT_NE(file("err").find("stopped by SIGINT; saved; run the same command to resume"), std::string::npos)
        << file("err");
  }
}

// A rank that fails must end all ranks at once, with a message that names it.
TEST_F(PretrainRanks, EndWithTheOneThatFails) {
  const std::filesystem::path folder = dir_.path();
  for (const char* rank : {"0", "1"}) std::filesystem::create_directory(folder / rank);
  for (const char* name : {"c.bin", "c.idx"}) std::filesystem::rename(folder / name, folder / "0" / name);
  EXPECT_EQ(
      start("-C %r RANK=%r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(free_port()),
            ""),
      75);
  EXPECT_NE(file("log.1").find("error: rank 1: c: there is neither c.idx nor c.bin"), std::string::npos)
      << file("log.1");
  EXPECT_NE(file("log.0").find("error: rank 0: "), std::string::npos) << file("log.0");
  EXPECT_NE(file("log.0").find("c.idx"), std::string::npos) << file("log.0");
}

// R6 allows the timeout plus five seconds; a closed connection must be noticed at once.
TEST_F(PretrainRanks, NameTheOneThatIsKilled) {
  const std::string port = std::to_string(free_port());
  const std::string options = kModel + "--train-iters 100000 --eval-iters 0 --log-json s.jsonl ";
  const CommandResult result = run_command(
      "cd " + dir_.path().string() + " && export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
      "; RANK=0 timeout 60 " + app("pretrain") + " " + options + " >log.0 2>&1 & a=$!; RANK=1 " +
      app("pretrain") + " " + options + " >log.1 2>&1 & b=$!; " +
      "until grep -q train s.jsonl 2>/dev/null || ! kill -0 $a; do sleep 0.05; done; "
      "kill -KILL $b; wait $a; echo $?");
  EXPECT_EQ(result.out, "75\n") << file("log.0") << file("log.1");
  EXPECT_NE(file("log.0").find("rank 1 on "), std::string::npos) << file("log.0");
}

// Wrong launcher settings must be detected without waiting for any rank.
TEST_F(PretrainApp, KnowsBeforeTheRendezvousWhatIsWrong) {
  const auto refused = [&](const std::string& environment, const std::string& options,
                           const std::string& part) {
    const CommandResult result = run_command("cd " + dir_.path().string() + " && " + environment +
                                             " timeout 20 " + app("pretrain") + " " + kModel + options);
    EXPECT_EQ(result.code, exit_code(ErrorKind::kUsage)) << result.all();
    EXPECT_NE(result.all().find(part), std::string::npos) << result.all();
  };
  const std::string two = "RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 ";
  refused("WORLD_SIZE=8", "", "RANK is not");
  refused("RANK=2 WORLD_SIZE=2", "", "RANK=2 and WORLD_SIZE=2");
  refused(two, "--nproc 2", "--nproc 2 and the environment contradict each other");
  refused(two, "--tensor-model-parallel-size 4", "--tensor-model-parallel-size 4");
  refused(two + "LOCAL_RANK=0", "--local_rank=1", "--local-rank 1 and LOCAL_RANK=0");
  refused("", "--gpus 0,1,2 --tensor-model-parallel-size 2", "does not divide the 3 ranks");
  refused("", "--node_rank 1", "--node-rank 1 without a launcher");
}

}  // namespace
}  // namespace megalith::test
