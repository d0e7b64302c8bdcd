// Runs tools/gpu_check as a user would: on a machine without a device, where something is missing, and over
// the emulated device.
#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/json/json.h"
#include "tests/support/compiler.h"
#include "tests/support/emulated_cuda.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/scripts.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

const std::string kRepository = MEGALITH_SOURCE_DIR, kBuild = MEGALITH_BINARY_DIR;

std::vector<Json> rows_of(const std::string& text) {
  std::vector<Json> rows;
  for (const std::string& line : split(trim(text), '\n'))
    if (!line.empty()) rows.push_back(Json::parse(line, "row"));
  return rows;
}

/// A folder that resembles one of tools/bundle, on a machine that seems to have a GPU.
class GpuCheck : public testing::Test {
 protected:
  GpuCheck() {
    make_directories(dir_ / "top/tools");
    make_directories(dir_ / "top/docs");
    for (const char* tool : {"gpu_check", "gpu_check_torch.py"})
      fs::copy_file(kRepository + "/tools/" + tool, dir_ / "top/tools/" + tool);
    fs::copy_file(kRepository + "/docs/training.md", dir_ / "top/docs/training.md");
    for (const char* folder : {"bin", "share"})
      fs::create_symlink(kBuild + "/" + folder, dir_ / "top/" + folder);
    write_script(
        dir_ / "machine/nvidia-smi",
        "case $1 in -L) echo 'GPU 0: NVIDIA H200 (UUID: GPU-0)' ;; *) echo '580.1, 1980 MHz' ;; esac\n");
    // Rows need no python3: PYTHON alone may call one.
    write_script(dir_ / "machine/python3", "echo called >" + (dir_ / "python") + "\nexit 1\n");
  }
  /// Runs the script, under a program that ends it if `runner` names one.
  CommandResult check(const std::string& options, const std::string& runner = "") const {
    return run_command("cd " + dir_.path().string() + " && PATH=" + (dir_ / "machine") +
                       ":$PATH GPU=H200-141GB PYTHON=false OMP_WAIT_POLICY=passive " + runner +
                       " top/tools/gpu_check --rows rows.jsonl " + options);
  }
  std::vector<Json> rows() const { return rows_of(read_file(dir_ / "rows.jsonl")); }
  TempDir dir_;
};

TEST_F(GpuCheck, SaysThatThereIsNoDevice) {
  if (file_exists("/dev/nvidiactl")) GTEST_SKIP() << "there is one";
  write_script(dir_ / "machine/nvidia-smi", "echo 'NVIDIA-SMI has failed' >&2; exit 9\n");
  const Variable plugin("MEGALITH_CUDA_LIBS", std::nullopt);
  const CommandResult result = check("");
  EXPECT_EQ(result.code, 0) << result.err;
  const Json row = Json::parse(result.out, "row");
  EXPECT_EQ(row["row"].as_string(), "device");
  EXPECT_EQ(row["result"].as_string(), "none");
  EXPECT_EQ(read_file(dir_ / "rows.jsonl"), "");  // when there is one, all has to be done
}

TEST_F(GpuCheck, FailsWhereADeviceAnswersAndThePluginDoesNot) {
  const Variable plugin("MEGALITH_CUDA_LIBS", std::nullopt);
  fs::remove(dir_ / "top/bin");
  for (const char* folder : {"top/bin", "top/lib"}) make_directories(dir_ / folder);
  for (const char* name : {"megalith-pretrain", "gpu_probe", "ops_test"})
    fs::copy_file(kBuild + "/bin/" + name, dir_ / "top/bin/" + name);
  for (const auto& entry : fs::directory_iterator(kBuild + "/lib"))
    if (entry.path().filename().string().find("libmegalith_cuda") == std::string::npos)
      fs::create_symlink(entry.path(), dir_ / "top/lib/" + entry.path().filename().string());
  const CommandResult result = check("--only curves,llama-7b");
  EXPECT_EQ(result.code, 69) << result.out << result.err;
  const Json row = Json::parse(result.out, "row");
  EXPECT_EQ(row["result"].as_string(), "unusable") << result.out;
  EXPECT_NE(row["detail"].as_string().find("libmegalith_cuda.so"), std::string::npos) << result.out;
}

TEST_F(GpuCheck, KnowsItsSections) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"--only speeds",
       "--only \"speeds\": there are device ops curves peaks layouts nccl profile gpt2-124m llama-7b "},
      {"--only", "--only needs sections, of device ops"},
      {"--ranks 1", "--ranks needs a number of GPUs, at least 2"},
      {"--only scaling-7b", "--only \"scaling-7b\": there are device "},
      {"--seconds soon", "--seconds needs a whole number"},
      {"--fast", "unknown option \"--fast\""}};
  for (const auto& [options, words] : bad) {
    const CommandResult result = check(options);
    EXPECT_EQ(result.code, 64) << options;
    EXPECT_NE(result.err.find(words), std::string::npos) << result.err;
  }
}

/// The sum of the sections' deadlines, and their number.
std::pair<int, int> total_of(const std::string& list) {
  std::istringstream lines(list);
  int seconds = 0, sections = 0;
  for (std::string line; std::getline(lines, line); ++sections) {
    std::istringstream words(line);
    std::string name;
    int deadline = 0;
    words >> name >> deadline;
    EXPECT_GE(deadline, 10) << line;
    seconds += deadline;
  }
  return {seconds, sections};
}

TEST_F(GpuCheck, TakesNineMinutesAndFifteenMoreForSeveralGpus) {
  EXPECT_EQ(total_of(check("--list").out), std::pair(9 * 60, 14));
  EXPECT_EQ(total_of(check("--list --ranks 8").out), std::pair((9 + 15) * 60, 19));
}

/// The same over the emulated device, which has as much memory as this.
class GpuCheckEmulated : public GpuCheck {
 protected:
  static constexpr const char* kMemory = "100663296";  // 96 MiB: the profile's operands take an eighth each
  const EmulatedPlugin plugin_;
  const Variable cudnn_{"MEGALITH_EMULATOR_CUDNN", "right"}, memory_{"MEGALITH_EMULATOR_MEMORY", kMemory},
      order_{"MEGALITH_EMULATOR_ORDER", "2"};
};

// Those of several ranks, which need more memory, are below.
TEST_F(GpuCheckEmulated, ShowsEverySectionOfOneRankOnTinyShapes) {
  if (kSanitizer) GTEST_SKIP() << "its sections have deadlines, which an emulator with checks exceeds";
  const CommandResult result = check(
      "--quick --only ops,curves,peaks,profile,gpt2-124m,llama-7b,gpt2-1.5b,attention,graph,torch,memcheck");
  EXPECT_EQ(result.code, 0) << result.out << result.err;
  std::map<std::string, std::string> results;
  for (const Json& row : rows()) results[row["row"].as_string()] = row["result"].as_string();
  const std::map<std::string, std::string> wanted = {{"device", "found"},
                                                     {"cudnn-properties", "kept"},
                                                     {"ops", "agree"},
                                                     {"curve-gpt2-fp32", "agree"},
                                                     {"curve-gpt2-bf16", "agree"},
                                                     {"curve-llama-fp32", "agree"},
                                                     {"curve-llama-bf16", "agree"},
                                                     {"peaks", "measured"},
                                                     {"profile", "measured"},
                                                     {"gpt2-124m", "measured"},
                                                     {"gpt2-124m-memory", "agree"},
                                                     {"llama-7b", "measured"},
                                                     {"llama-7b-memory", "agree"},
                                                     {"gpt2-1.5b", "measured"},
                                                     {"gpt2-1.5b-memory", "agree"},
                                                     {"attention-quick-forward", "measured"},
                                                     {"attention-quick-backward", "measured"},
                                                     {"attention-cudnn-quick-forward", "measured"},
                                                     {"attention-cudnn-quick-backward", "measured"},
                                                     {"attention", "measured"},
                                                     {"cudnn", "measured"},
                                                     {"graph", "agree"},
                                                     {"torch", "none"},
                                                     {"memcheck", "none"}};
  EXPECT_EQ(results, wanted) << result.out;
  EXPECT_EQ(rows().size(), wanted.size());
  EXPECT_EQ(rows_of(result.out).size(), wanted.size());  // each also as it is finished
  EXPECT_FALSE(file_exists(dir_ / "python"));
  EXPECT_EQ(Json::load(dir_ / "rows.jsonl.cudnn")["deviceVer"].as_int(), 900);
  for (const Json& row : rows()) {
    const std::string& name = row["row"].as_string();
    if (name == "graph") {
      EXPECT_TRUE(row["detail"].as_string().starts_with("4 steps have the same losses")) << row.dump();
      EXPECT_GT(row["ms"].as_double(), 0) << row.dump();
    }
    if (name == "device") {
      EXPECT_NE(row["detail"].as_string().find("580.1, 1980 MHz"), std::string::npos) << row.dump();
      EXPECT_EQ(row["driver_cuda"].as_int(), 13000);
      EXPECT_EQ(row["cudnn"].as_int(), 91900);
    }
    if (name == "gpt2-124m") {
      for (const char* figure : {"causal_tflops", "mfu_percent", "percent_of_peak"})
        EXPECT_GE(row[figure].as_double(), 0) << row.dump();
      // Two layers of 32 columns with products of 4 x 32 x 32 and 2 x 32 x 48, a head of 512, 16 positions.
      const double products = 6.0 * (2 * (4 * 32 * 32 + 2 * 32 * 48) + 512 * 32);
      EXPECT_NEAR(row["tflops"].as_double() * 1e12,
                  row["tokens_per_s"].as_double() * (products + 12.0 * 2 * 32 * 16),
                  1e-4 * row["tflops"].as_double() * 1e12);
    }
  }
}

// A row is on the disk when it is printed. What a kill cut short is done again, and nothing else.
TEST_F(GpuCheckEmulated, ResumesAfterTheRowsThatAreThere) {
  const std::string options = "--quick --only curves,attention,graph";
  check(options, "timeout --signal=KILL 4");
  const std::string killed = read_file(dir_ / "rows.jsonl");
  write_file(dir_ / "rows.jsonl", killed + "{\"row\": \"cur");
  EXPECT_EQ(check(options).code, 0);
  EXPECT_TRUE(read_file(dir_ / "rows.jsonl").starts_with(killed));
  std::map<std::string, int> times;
  for (const Json& row : rows()) ++times[row["row"].as_string()];
  EXPECT_EQ(times.size(), 13U);
  for (const auto& [name, count] : times) EXPECT_EQ(count, 1) << name;
  const CommandResult again = check(options);
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, "");
  EXPECT_NE(again.err.find("curve-llama-bf16"), std::string::npos) << "the table has all rows";
  const CommandResult other = check("--only graph");
  EXPECT_EQ(other.code, 64) << "those rows are of --quick";
  EXPECT_NE(other.err.find("--rows"), std::string::npos) << other.err;
}

// A kill may come between two rows of one section.
TEST_F(GpuCheckEmulated, ResumesWithinASection) {
  const std::string options = "--quick --only gpt2-124m,attention";
  const auto names = [this] {
    std::vector<std::string> out;
    for (const Json& row : rows()) out.push_back(row["row"].as_string());
    return out;
  };
  ASSERT_EQ(check(options).code, 0);
  const std::vector<std::string> all = names();
  const std::string text = read_file(dir_ / "rows.jsonl");
  for (const char* last : {"device", "gpt2-124m-memory", "attention-quick-forward", "cudnn"}) {
    const size_t row = text.find(concat("{\"row\": \"", last, '"'));
    ASSERT_NE(row, std::string::npos) << last;
    write_file(dir_ / "rows.jsonl", text.substr(0, text.find('\n', row) + 1));
    EXPECT_EQ(check(options).code, 0) << last;
    EXPECT_EQ(names(), all) << last;
  }
}

TEST_F(GpuCheckEmulated, NamesTheFileOfAMissingCudnn) {
  if (dlopen("libcudnn.so.9", RTLD_LAZY | RTLD_LOCAL) != nullptr) GTEST_SKIP() << "this machine has cuDNN";
  std::filesystem::create_symlink(emulated_cuda_folder() + "/libmegalith_cuda.so",
                                  dir_ / "libmegalith_cuda.so");
  const Variable plugin("MEGALITH_CUDA_LIBS", dir_.path());
  EXPECT_EQ(check("--quick --only device").code, 0) << "no fault of ours";
  const Json row = rows().back();
  EXPECT_EQ(row["row"].as_string(), "cudnn-properties");
  EXPECT_NE(row["detail"].as_string().find("there is no libcudnn.so.9"), std::string::npos) << row.dump();
}

TEST_F(GpuCheckEmulated, EndsASectionThatHangsAndNamesIt) {
  write_script(dir_ / "machine/compute-sanitizer", "exec sleep 100\n");
  const CommandResult result = check("--quick --only graph,memcheck --seconds 1");
  EXPECT_EQ(result.code, 1) << result.out;
  const Json row = rows().back();
  EXPECT_EQ(row["row"].as_string(), "memcheck");
  EXPECT_EQ(row["result"].as_string(), "late");
  EXPECT_NE(row["detail"].as_string().find("section memcheck was not done after its 1 s"), std::string::npos);
  EXPECT_LT(row["seconds"].as_int(), 40);
}

TEST_F(GpuCheckEmulated, SaysWhatDoesNotFitAndWhatFails) {
  ASSERT_EQ(check("--quick --only device").code, 0);
  {
    const Variable memory("MEGALITH_EMULATOR_MEMORY", "41943040");  // less than the kernels' scratch memory
    EXPECT_EQ(check("--quick --only gpt2-124m").code, 0) << "no fault of ours";
  }
  EXPECT_EQ(rows().back()["result"].as_string(), "none");
  const std::string detail = rows().back()["detail"].as_string();
  EXPECT_TRUE(detail.starts_with("does not fit: the run needs ")) << detail;
  EXPECT_NE(detail.find("the device has "), std::string::npos) << detail;
  {
    const Variable fault("MEGALITH_EMULATOR_FAULT", "214:20");
    EXPECT_EQ(check("--quick --only gpt2-1.5b").code, 1);
  }
  EXPECT_EQ(rows().back()["result"].as_string(), "failed");
  EXPECT_NE(rows().back()["detail"].as_string().find("exit code 69"), std::string::npos);
  EXPECT_NE(rows().back()["detail"].as_string().find("ECC"), std::string::npos);
}

// ---- several ranks

/// Over two emulated devices.
class GpuCheckRanks : public GpuCheck {
 protected:
  void SetUp() override {
    if (kSanitizer) GTEST_SKIP() << "its sections have deadlines, which an emulator with checks exceeds";
  }
  std::map<std::string, std::string> results() const {
    std::map<std::string, std::string> all;
    for (const Json& row : rows()) {
      const auto [at, is_new] = all.emplace(row["row"].as_string(), row["result"].as_string());
      EXPECT_TRUE(is_new) << at->first;
    }
    return all;
  }
  /// Takes rows out, as if they had not been reached.
  void forget(const std::vector<std::string>& names) const {
    std::string kept;
    for (const std::string& line : split(trim(read_file(dir_ / "rows.jsonl")), '\n')) {
      const std::string name = Json::parse(line, "row")["row"].as_string();
      if (std::find(names.begin(), names.end(), name) == names.end()) kept += line + '\n';
    }
    write_file(dir_ / "rows.jsonl", kept);
  }
  const EmulatedGpus gpus_{3, 2};
  const Variable memory_{"MEGALITH_EMULATOR_MEMORY", concat(size_t{4} << 30)};
};

// A run of eight ranks that share a GPU, and one over NCCL with one rank.
TEST_F(GpuCheckRanks, ShowsEveryLayoutAndNcclOnOneGpu) {
  const std::string options = "--quick --only layouts,nccl";
  const CommandResult result = check(options);
  EXPECT_EQ(result.code, 0) << result.out << result.err;
  std::map<std::string, std::string> wanted = {
      {"device", "found"}, {"cudnn-properties", "none"}, {"nccl", "agree"}};
  for (const char* layout :
       {"data", "zero1", "zero2", "tensor", "sequence", "pipeline", "interleaved", "context", "all"})
    wanted.emplace(concat("shared-", layout), "agree");
  for (const char* call : {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "send_recv"})
    wanted.emplace(concat("nccl1-", call), "measured");
  EXPECT_EQ(results(), wanted) << result.out;
  forget({"shared-context", "nccl1-broadcast", "nccl"});
  EXPECT_EQ(check(options).code, 0);
  EXPECT_EQ(results(), wanted);
}

TEST_F(GpuCheckRanks, ShowsNcclLayoutsAndScalingAmongGpus) {
  const std::string options =
      "--quick --ranks 2 --only nccl-ranks,layouts-ranks,scaling-124m,scaling-1.5b,scaling-7b";
  const CommandResult result = check(options);
  EXPECT_EQ(result.code, 0) << result.out << result.err;
  std::map<std::string, std::string> wanted = {
      {"device", "found"}, {"cudnn-properties", "none"}, {"nccl2", "agree"}, {"ranks2-all", "none"}};
  for (const char* layout :
       {"data", "zero1", "zero2", "tensor", "sequence", "pipeline", "interleaved", "context"})
    wanted.emplace(concat("ranks2-", layout), "agree");
  for (const char* call : {"all_reduce", "reduce_scatter", "send_recv"})
    wanted.emplace(concat("nccl2-", call, "-4KiB"), "measured");
  for (const std::string model : {"gpt2-124m", "gpt2-1.5b", "llama-7b"}) {
    wanted.emplace(model, "measured");
    wanted.emplace(model + "-memory", "agree");
    wanted.emplace(model + "-ranks2", "measured");
  }
  EXPECT_EQ(results(), wanted) << result.out;
  std::map<std::string, Json> rows_by_name;
  for (const Json& row : rows()) rows_by_name.emplace(row["row"].as_string(), row);
  const Json &one = rows_by_name.at("gpt2-124m"), &two = rows_by_name.at("gpt2-124m-ranks2");
  EXPECT_EQ(two["ranks"].as_int(), 2);
  EXPECT_NEAR(two["percent_of_linear"].as_double(),
              100 * two["tokens_per_s"].as_double() / (2 * one["tokens_per_s"].as_double()), 0.01);
  // The rate counts what a link carries: of two ranks the whole tensor of 4096 bytes.
  const Json& sum = rows_by_name.at("nccl2-all_reduce-4KiB");
  EXPECT_NEAR(sum["gb_per_s"].as_double(), 4096e-9 / (1e-3 * sum["ms"].as_double()),
              1e-6 * sum["gb_per_s"].as_double());
  forget({"nccl2-send_recv-4KiB", "nccl2"});
  EXPECT_EQ(check(options).code, 0);
  EXPECT_EQ(results(), wanted);
}

TEST_F(GpuCheckRanks, NeedsAsManyGpusAndEndsInTime) {
  const CommandResult few = check("--quick --ranks 4 --only nccl-ranks");
  EXPECT_EQ(few.code, 64) << few.out;
  EXPECT_NE(few.err.find("--ranks 4: there are 2 GPUs"), std::string::npos) << few.err;
  const CommandResult late = check("--quick --only layouts --seconds 1");
  EXPECT_EQ(late.code, 1) << late.out;
  EXPECT_EQ(rows().back()["result"].as_string(), "late");
  EXPECT_NE(rows().back()["detail"].as_string().find("section layouts was not done after its 1 s"),
            std::string::npos)
      << late.out;
}

// With one GPU, NCCL may be missing.
TEST_F(GpuCheckRanks, SaysThatThereIsNoNccl) {
  const Variable version("MEGALITH_NCCL_VERSION", "22100");
  EXPECT_EQ(check("--quick --only nccl").code, 0);
  EXPECT_EQ(rows().back()["row"].as_string(), "nccl");
  EXPECT_EQ(rows().back()["result"].as_string(), "none");
}

}  // namespace
}  // namespace megalith::test
