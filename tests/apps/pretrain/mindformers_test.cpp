// Tests training and generating as in MindFormers: with run files, rank tables and run_distribute.sh.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/apps/pretrain/pretrain_app.h"
#include "tests/support/once/pattern.h"
#include "tests/support/processes.h"
#include "tests/support/rank_processes.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

const std::string kShare = MEGALITH_SOURCE_DIR "/share/";

/// A folder with a dataset, a copy of run_distribute.sh, and a run file that means the same as kModel.
class MindFormersApps : public PretrainApp {
 protected:
  MindFormersApps() {
    fs::copy_file(kShare + "run_distribute.sh", dir_ / "run_distribute.sh");
    write_file(
        dir_ / "run.yaml",
        "run_mode: train\noutput_dir: ./saved\ncontext:\n  mode: 0\n  device_target: CPU\n"
        "use_parallel: True\nparallel:\n  parallel_mode: 1\n  full_batch: True\n"
        "  enable_parallel_optimizer: True\nparallel_config:\n  data_parallel: 2\n  model_parallel: 1\n"
        "  pipeline_stage: 1\n  optimizer_shard: True\n  micro_batch_num: 1\n  vocab_emb_dp: True\n"
        "  gradient_aggregation_group: 2\nrunner_config:\n  batch_size: 2\n"
        "lr_schedule:\n  type: CosineWithWarmUpLR\n  learning_rate: 0.01\n  lr_end: 0.001\n"
        "  warmup_steps: 2\n  total_steps: 20\n"
        "train_dataset:\n  data_loader:\n    type: MindDataset\n    dataset_dir: c\n    shuffle: True\n"
        "callbacks:\n  - type: MFLossMonitor\n    per_print_times: 5\n"
        "  - type: CheckpointMointor\n    save_checkpoint_steps: 10\n"
        "model:\n  model_config:\n    type: GPT2Config\n    seq_length: 12\n    vocab_size: 61\n"
        "    hidden_size: 16\n    num_layers: 2\n    num_heads: 2\n    expand_ratio: 4\n"
        "    compute_dtype: float32\n"
        "split: 8,1,1\neval-interval: 10\neval-iters: 2\nthreads: 1\n");
    const CommandResult table =
        run_command(app("rank-table") + " --device_num '[0,2)' --server_ip 127.0.0.1");
    EXPECT_EQ(table.code, 0) << table.err;
    write_file(dir_ / "table.json", table.out);
  }
  CommandResult shell(const std::string& script) const {
    const std::string bin = fs::path(app("pretrain")).parent_path().string();
    return run_command("cd " + dir_.path().string() + "\nexport PATH=" + bin +
                       ":$PATH MASTER_PORT=" + std::to_string(free_port()) + "\n" + script);
  }
  std::string rank_log(int rank) const { return file(concat("output/log/rank_", rank, "/mindformer.log")); }
};

TEST_F(MindFormersApps, TrainOnTwoRanksWithOneRanksLosses) {
  SKIP_WITHOUT_GLOO();
  const CommandResult run = shell("bash run_distribute.sh table.json run.yaml [0,2] train 2");
  ASSERT_EQ(run.code, 0) << run.err << rank_log(0) << rank_log(1);
  const CommandResult one = train("");
  EXPECT_EQ(losses(rank_log(0)), losses(one.out)) << rank_log(0);
  EXPECT_GE(split(losses(rank_log(0)), '\n').size(), 8u);
  EXPECT_TRUE(fs::exists(dir_ / "saved/iter_0000010"));
  EXPECT_TRUE(fs::exists(dir_ / "saved/iter_0000020"));
  EXPECT_NE(run.out.find("start training for rank 1, device 1"), std::string::npos) << run.out;
}

// Runs the script twice, as on two servers with a shared folder. Arguments after RANK_SIZE go to the program.
TEST_F(MindFormersApps, ShareAFolderBetweenTwoInvocations) {
  SKIP_WITHOUT_GLOO();
  const CommandResult run = shell(
      "bash run_distribute.sh table.json run.yaml [0,1] train 2 --train-iters 4 --save other & a=$!\n"
      "bash run_distribute.sh table.json run.yaml [1,2] train 2 --train-iters 4 --save other & b=$!\n"
      "wait $a; x=$?; wait $b; echo codes $x $?");
  EXPECT_NE(run.out.find("codes 0 0"), std::string::npos) << run.out << rank_log(0) << rank_log(1);
  EXPECT_TRUE(fs::exists(dir_ / "other/iter_0000004"));
}

TEST_F(MindFormersApps, EndWithTheRankThatFails) {
  SKIP_WITHOUT_GLOO();
  const CommandResult run =
      shell("bash run_distribute.sh table.json run.yaml [0,2] train 2 --data-path nothing");
  EXPECT_EQ(run.code, 66) << run.err;
  EXPECT_NE(run.err.find("the end of output/log/rank_"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("nothing.idx"), std::string::npos) << run.err;
}

// max_device_memory limits the memory of a rank.
TEST_F(MindFormersApps, KeepWithinTheDevicesMemory) {
  const std::string yaml = file("run.yaml");
  const auto limited = [&](const std::string& max) {
    write_file(dir_ / "run.yaml",
               test::replaced(yaml, "  mode: 0\n", "  mode: 0\n  max_device_memory: " + max + "\n"));
    return shell("megalith-pretrain --config run.yaml --nproc 2 --train-iters 4 --save small");
  };
  const CommandResult small = limited("\"0.0001GB\"");
  EXPECT_EQ(small.code, 64) << small.err;
  EXPECT_NE(small.err.find("--device-memory-gb 0.0001: (tensor, pipeline) rank (0, 0) needs"),
            std::string::npos)
      << small.err;
  EXPECT_FALSE(fs::exists(dir_ / "small"));
  const CommandResult enough = limited("\"1GB\"");
  EXPECT_EQ(enough.code, 0) << enough.err;
}

// The run file is for one device, like upstream's configs/gpt2/run_gpt2.yaml. Planning and training use one
// rank; two ranks are refused.
TEST_F(MindFormersApps, AreOneRankWhereUseParallelIsFalse) {
  write_file(dir_ / "run.yaml",
             test::replaced(file("run.yaml"), "use_parallel: True", "use_parallel: False"));
  const CommandResult plans = shell("megalith-autoplan --json --top 1 --config run.yaml");
  ASSERT_EQ(plans.code, 0) << plans.err;
  const Json answer = Json::parse(plans.out, "answer");
  EXPECT_EQ(answer["devices"].as_int(), 1);
  const CommandResult batch =
      shell("megalith-autoplan --json --top 1 --config run.yaml --global-batch-size 8");
  ASSERT_EQ(batch.code, 0) << batch.err;
  EXPECT_NE(batch.err.find("--global-batch-size on the command line comes before "
                           "--gradient-accumulation-steps 1 (run.yaml:16: parallel_config.micro_batch_num)"),
            std::string::npos)
      << batch.err;
  const CommandResult two = shell("megalith-pretrain --config run.yaml --nproc 2 --dry-run");
  EXPECT_EQ(two.code, 64) << two.err;
  EXPECT_NE(two.err.find("run.yaml:6: use_parallel gives "), std::string::npos) << two.err;
  const CommandResult one = shell("megalith-pretrain --config run.yaml --train-iters 3 --save one");
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(fs::exists(dir_ / "one/iter_0000003"));
}

TEST_F(MindFormersApps, NameTheKeyOfACheckpointThatIsMissing) {
  const std::string yaml = file("run.yaml");
  write_file(dir_ / "run.yaml", test::replaced(yaml, "    type: GPT2Config\n",
                                               "    type: GPT2Config\n    checkpoint_name_or_path: gpt2\n"));
  const CommandResult run = shell("megalith-pretrain --config run.yaml --nproc 2");
  EXPECT_EQ(run.code, 66) << run.err;
  EXPECT_NE(run.err.find(": model.model_config.checkpoint_name_or_path: gpt2 is not there"),
            std::string::npos)
      << run.err;
  EXPECT_NE(run.err.find("run.yaml:"), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("--exit-on-missing-checkpoint"), std::string::npos) << run.err;
}

TEST_F(MindFormersApps, NameWhatIsWrongBeforeARankStarts) {
  const auto refused = [&](const std::string& arguments, int code, const std::string& part) {
    const CommandResult run = shell("bash run_distribute.sh " + arguments);
    EXPECT_EQ(run.code, code) << arguments << run.err;
    EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
    EXPECT_FALSE(fs::exists(dir_ / "output"));
  };
  refused("none.json run.yaml [0,2] train 2", 66, "none.json: is not a file");
  refused("table.json none.yaml [0,2] train 2", 66, "none.yaml: is not a file");
  refused("table.json run.yaml 0,2 train 2", 64, "\"0,2\": wanted [A,B]");
  refused("table.json run.yaml [0,4] train 2", 64, "goes beyond the 2 ranks");
  refused("table.json run.yaml [0,2] train 4", 64, "table.json: holds 2 ranks, RANK_SIZE is 4");
  // 08 is read as decimal, not octal.
  refused("table.json run.yaml [0,08] train 2", 64, "\"[0,08]\" goes beyond the 2 ranks");
  refused("table.json run.yaml [0,2] train 08", 64, "table.json: holds 2 ranks, RANK_SIZE is 8");
  refused("table.json run.yaml [0,2] evaluate 2", 64, "\"evaluate\" is not a mode");
  write_file(dir_ / "table.json", "{\"server_list\": [], \"status\": \"initializing\"}");
  refused("table.json run.yaml [0,2] train 2", 64, "table.json: status: \"initializing\"");
  write_file(dir_ / "table.json",
             R"({"server_list": [{"server_id": "a", "device": [{"rank_id": "0"}]}], "status": "completed"})");
  refused("table.json run.yaml [0,1] train 1", 65, "table.json: server_list[0].device[0]: has no");
  write_file(dir_ / "table.json", "{");
  refused("table.json run.yaml [0,2] train 2", 65, "table.json");
}

TEST_F(MindFormersApps, Predict) {
  fs::copy(test_data("parity/goldens/generate-gpt2"), dir_ / "model");
  fs::copy(test_data("text/goldens/trained/tokenizer.json"), dir_ / "model");
  write_file(dir_ / "predict.yaml",
             "run_mode: train\nload_checkpoint: model\nprocessor:\n  tokenizer:\n    max_length: 9\n"
             "parallel_config:\n  model_parallel: 2\nmodel:\n  model_config:\n    type: GPT2Config\n"
             "    num_layers: 2\n    do_sample: False\n    max_decode_length: 20\n");
  const CommandResult run = shell("bash run_distribute.sh table.json predict.yaml [0,2] predict 2 'The '");
  const CommandResult own =
      shell(app("generate") + " --model model --temperature 0 --max-length 20 --prompt 'The '");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, own.out);
  EXPECT_NE(rank_log(0).find(own.out), std::string::npos) << rank_log(0);
}

// The expected output is that of hccl_tools.py for devices 4 and 5 of 10.0.0.1 (the addresses come from the
// driver).
TEST(RankTableApp, WritesWhatHcclToolsWrites) {
  const CommandResult result =
      run_command(app("rank-table") + " --device_num \"[4,6)\" --server_ip 10.0.0.1");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, R"({
    "version": "1.0",
    "server_count": "1",
    "server_list": [
        {
            "server_id": "10.0.0.1",
            "device": [
                {
                    "device_id": "4",
                    "device_ip": "10.0.0.1",
                    "rank_id": "0"
                },
                {
                    "device_id": "5",
                    "device_ip": "10.0.0.1",
                    "rank_id": "1"
                }
            ],
            "host_nic_ip": "reserve"
        }
    ],
    "status": "completed"
}
)");
  EXPECT_EQ(run_command(app("rank-table") + " --visible_devices 4,5 --server_ip 10.0.0.1").out, result.out);
}

TEST(RankTableApp, MergesServersWithRisingRanks) {
  const TempDir dir;
  const std::string cd = "cd " + dir.path().string() + " && ";
  const CommandResult merged = run_command(
      cd + app("rank-table") + " --device_num '[0,2)' --server_ip a > a.json && " + app("rank-table") +
      " --device_num '[0,3)' --server_ip b > b.json && " + app("rank-table") + " merge b.json a.json");
  ASSERT_EQ(merged.code, 0) << merged.err;
  const Json table = Json::parse(merged.out, "merged");
  EXPECT_EQ(table["server_count"].as_string(), "2");
  std::string ranks;
  for (const Json& server : table["server_list"].as_array())
    for (const Json& device : server["device"].as_array())
      ranks += server["server_id"].as_string() + device["device_id"].as_string() + ":" +
               device["rank_id"].as_string() + " ";
  EXPECT_EQ(ranks, "b0:0 b1:1 b2:2 a0:3 a1:4 ");
  const auto refused = [&](const std::string& words, int code, const std::string& part) {
    const CommandResult result = run_command(cd + app("rank-table") + " " + words);
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  };
  refused("merge a.json a.json", 64, "a.json: server_list: server \"a\" is already in a.json");
  refused("merge a.json none.json", 66, "none.json");
  refused("merge", 64, "merge needs files");
  // hccl_tools.py of MindSpore: the range counts in the list of visible devices.
  EXPECT_EQ(
      run_command(app("rank-table") + " --visible_devices 7,4,5 --device_num '[1,3)' --server_ip a").out,
      run_command(app("rank-table") + " --visible_devices 4,5 --server_ip a").out);
  refused("--visible_devices 4,5 --device_num '[0,3)' --server_ip a", 64,
          "lists 2 devices; give a range within [0,2)");
  for (const char* twice : {"0,0", "4,5,4", "1,01"})
    refused(std::string("--visible_devices ") + twice + " --server_ip a", 64,
            " appears twice; give each device once");
  refused("join a.json b.json", 64, "\"join\"; wanted merge");
  refused("--device_num '[3,2)'", 64, "wanted \"[0,8)\"");
  refused("", 64, "--device-num is missing");
}

// For each preset there must be a plan for devices with the memory, and in the layout, that the preset
// states.
TEST(MindFormersPresets, ArePlanned) {
  const struct {
    const char* file;
    int tensor, pipeline, devices;
  } presets[] = {{"gpt2/run_gpt2_124m.yaml", 1, 1, 8},
                 {"gpt2/run_gpt2_1.3b.yaml", 2, 1, 8},
                 {"gpt2/run_gpt2_13b.yaml", 2, 4, 32},
                 {"gpt2/run_gpt2_52b.yaml", 2, 16, 128},
                 {"llama/run_llama_7b.yaml", 1, 4, 8}};
  for (const auto& preset : presets) {
    const CommandResult result =
        run_command(app("autoplan") + " --json --top 1 --config " + kShare + "mindformers/" + preset.file);
    ASSERT_EQ(result.code, 0) << preset.file << result.err << result.out;
    const Json answer = Json::parse(result.out, "answer");
    const Json& plan = answer["plans"].as_array().at(0);
    EXPECT_EQ(plan["tensor"].as_int(), preset.tensor) << preset.file;
    EXPECT_EQ(plan["pipeline"].as_int(), preset.pipeline) << preset.file;
    EXPECT_EQ(answer["devices"].as_int(), preset.devices) << preset.file;
  }
  const TempDir dir;
  write_file(dir / "run.yaml",
             test::replaced(read_file(kShare + "mindformers/gpt2/run_gpt2_13b.yaml"), "31GB", "8GB"));
  const CommandResult small = run_command(app("autoplan") + " --config " + (dir / "run.yaml"));
  EXPECT_EQ(small.code, 64) << small.out;  // max_device_memory was obeyed
  EXPECT_NE(small.err.find("(8.00 GB each"), std::string::npos) << small.err;
}

}  // namespace
}  // namespace megalith::test
