// The machine code in this build's CUDA plugin of attention's kernels on the tensor cores and of the row
// kernels, and for which devices the plugin holds code.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/once/pattern.h"

namespace megalith::test {
namespace {

constexpr char kPlugin[] = MEGALITH_BINARY_DIR "/lib/libmegalith_cuda.so";
bool has_plugin() {
  return file_exists(kPlugin);
}

/// The shell's words that run cuobjdump, and let it find nvdisasm, which it runs: both on PATH, in CUDA's
/// toolkit, or in the Python environment of the checks (tools/setup). Empty if they are nowhere.
std::string find_cuobjdump() {
  std::vector<std::string> folders{"", "/usr/local/cuda/bin:"};
  if (const char* python = std::getenv("MEGALITH_PYTHON")) {
    const CommandResult found = run_command(
        std::string(python) + " -c 'import nvidia.cu13; print(nvidia.cu13.__path__[0], end=\"/bin:\")'");
    if (found.code == 0) folders.push_back(found.out);
  }
  for (const std::string& folder : folders) {
    const std::string path = "PATH=\"" + folder + "$PATH\"";
    if (run_command(path + "; command -v cuobjdump && command -v nvdisasm").code == 0)
      return path + " cuobjdump";
  }
  return "";
}
const std::string& cuobjdump() {
  static const std::string kCommand = find_cuobjdump();
  return kCommand;
}

/// What ptxas says of a kernel, and its instructions.
struct Kernel {
  int registers = 0, spilled = 0, shared = 0;  // shared: bytes, without what a launch asks for
  std::set<std::string> instructions;
};

/// The registers that a thread may have. A block has four warps, and the last number in a kernel's name says
/// how many blocks share a multiprocessor with 65536 registers. A thread gets a multiple of 8, at most 255.
int designed_registers(const std::string& name) {
  const size_t end = name.rfind("EEE"), begin = name.rfind("ELi", end - 1);
  const int blocks = std::stoi(name.substr(begin + 3, end - begin - 3));
  return std::min(255, 65536 / 128 / blocks / 8 * 8);
}

class CudaMachineCode : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!has_plugin()) GTEST_SKIP() << "this build has no CUDA plugin";
  }

  /// The kernels of a file of libcore/ops/cuda, by their symbols, as the build compiled them for the plugin.
  std::map<std::string, Kernel> kernels_of(const std::string& file) const {
    const std::string object =
        MEGALITH_BINARY_DIR "/libcore/CMakeFiles/megalith_cuda_kernels.dir/ops/cuda/" + file + ".o";
    std::map<std::string, Kernel> kernels;
    read_sizes(read_file(object + ".ptxas"), kernels);
    if (has_code()) {
      const CommandResult code = run_command(cuobjdump() + " -sass -arch " + GetParam() + ' ' + object);
      EXPECT_EQ(code.code, 0) << code.err;
      read_instructions(code.out, kernels);
    }
    return kernels;
  }

  /// Whether the instructions of kernels can be read.
  bool has_code() const { return !cuobjdump().empty(); }

 private:
  /// Reads what cmake/keep_ptxas_report.sh kept, for this architecture alone.
  static void read_sizes(const std::string& report, std::map<std::string, Kernel>& kernels) {
    static const test::Pattern kCompiled("Compiling entry function '(\\S+)' for '(\\S+)'"),
        kSpilled("(\\d+) bytes spill stores"), kRegisters("Used (\\d+) registers"),
        kShared("(\\d+) bytes smem");
    std::istringstream lines(report);
    Kernel* kernel = nullptr;
    for (std::string line; std::getline(lines, line);) {
      if (const auto found = kCompiled.first_in(line); !found.empty())
        kernel = found[2] == GetParam() ? &kernels[found[1]] : nullptr;
      if (kernel == nullptr) continue;
      if (const auto found = kSpilled.first_in(line); !found.empty()) kernel->spilled = std::stoi(found[1]);
      if (const auto found = kRegisters.first_in(line); !found.empty())
        kernel->registers = std::stoi(found[1]);
      if (const auto found = kShared.first_in(line); !found.empty()) kernel->shared = std::stoi(found[1]);
    }
  }
  static void read_instructions(const std::string& text, std::map<std::string, Kernel>& kernels) {
    static const std::string kFunction = "Function : ";
    std::istringstream lines(text);
    std::string name;
    for (std::string line; std::getline(lines, line);) {
      if (const size_t at = line.find(kFunction); at != std::string::npos)
        name = line.substr(at + kFunction.size());
      const size_t begin = line.find("*/"), end = line.find(';');  // /*0010*/ @P0 NAME.KIND operands ;
      if (name.empty() || begin == std::string::npos || end == std::string::npos || end < begin) continue;
      std::istringstream words(line.substr(begin + 2, end - begin - 2));
      std::string word;
      words >> word;
      if (word.starts_with("@")) words >> word;
      kernels[name].instructions.insert(word);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Architectures, CudaMachineCode, testing::Values("sm_80", "sm_90a", "sm_100"),
                         [](const auto& architecture) { return std::string(architecture.param); });

bool has(const Kernel& kernel, const std::string& prefix) {
  return std::any_of(kernel.instructions.begin(), kernel.instructions.end(),
                     [&](const std::string& name) { return name.starts_with(prefix); });
}

void expect_own_memory(const Kernel& kernel) {
  for (const char* local_or_atomic : {"LDL", "STL", "ATOM", "RED"})
    EXPECT_FALSE(has(kernel, local_or_atomic)) << local_or_atomic;
}

void expect_tensor_cores(const std::string& name, const Kernel& kernel) {
  const bool is_bf16 = name.find("4Bf16") != std::string::npos;
  EXPECT_EQ(has(kernel, "HMMA.16816.F32.BF16"), is_bf16);
  EXPECT_TRUE(has(kernel, "HMMA.16816.F32"));
  EXPECT_TRUE(has(kernel, "LDSM.16.M88.4"));
  EXPECT_TRUE(has(kernel, "LDSM.16.MT88.4"));
  EXPECT_TRUE(has(kernel, "LDGSTS.E.BYPASS.128"));  // cp.async of 16 bytes
  EXPECT_TRUE(has(kernel, "STG.E.128"));
  expect_own_memory(kernel);
}

TEST_P(CudaMachineCode, OfAttentionUsesTensorCoresAndNoLocalMemory) {
  int kernels = 0;
  for (const char* file : {"flash.cu", "flash_grad.cu"})
    for (const auto& [name, kernel] : kernels_of(file)) {
      if (name.find("flash_delta") != std::string::npos) continue;
      SCOPED_TRACE(name);
      ++kernels;
      EXPECT_EQ(kernel.spilled, 0);
      EXPECT_GT(kernel.registers, 0);
      EXPECT_LE(kernel.registers, designed_registers(name));
      if (has_code()) expect_tensor_cores(name, kernel);
    }
  EXPECT_EQ(kernels, 24);  // three for heads of up to 64, 80, 96 and 128 columns, in bf16 and in fp16
  if (!has_code()) GTEST_SKIP() << "no cuobjdump here: only the registers were checked";
}

// ---- row kernels

/// A kernel as it is launched for long rows of 16 bits, and how many blocks a multiprocessor shall hold then:
/// of an A100, and of an H200 or a B200, which have more shared memory.
struct RowKernel {
  const char* name;  // as in the symbol
  int threads, shared, blocks_80, blocks_90;
};
constexpr int kLongestHeld = 50304 * 2;  // GPT-2's logits with padding
constexpr RowKernel kRowKernels[] = {{"9team_normI", 256, 0, 2, 2},
                                     {"14team_norm_gradI", 256, 0, 2, 2},
                                     {"12softmax_lossI", 512, kLongestHeld, 1, 2},
                                     {"6swigluI", 256, 0, 6, 6},
                                     {"11swiglu_gradI", 256, 0, 5, 5},
                                     {"12wide_dropoutI", 256, 0, 6, 6},
                                     {"4ropeI", 256, 512, 5, 6},
                                     {"9embeddingI", 256, 0, 6, 6},
                                     {"9sum_tilesI", 256, 0, 6, 6},
                                     {"10join_tilesI", 256, 0, 6, 6},
                                     {"13position_gradI", 256, 0, 5, 5}};

/// The row kernel with this symbol; null for others, and for those that take one element at a time.
const RowKernel* row_kernel(const std::string& symbol) {
  if (symbol.find("Li1E") != std::string::npos) return nullptr;
  for (const RowKernel& kernel : kRowKernels)
    if (symbol.find(kernel.name) != std::string::npos) return &kernel;
  return nullptr;
}

/// The blocks that a multiprocessor holds at a time: it has 65536 registers, which a warp takes 256 at a
/// time, 2048 threads, and shared memory, of which each block takes 1 KiB more than it asks for.
int resident_blocks(const Kernel& kernel, const RowKernel& launch, int shared_memory) {
  const int warps = launch.threads / 32, of_warp = (kernel.registers * 32 + 255) / 256 * 256;
  const int shared = kernel.shared + launch.shared + 1024;
  return std::min({65536 / of_warp / warps, 2048 / launch.threads, shared_memory / shared});
}

TEST_P(CudaMachineCode, OfRowKernelsReadsSixteenBytesAtATime) {
  const bool is_a100 = GetParam() == std::string("sm_80");
  int kernels = 0;
  for (const char* file : {"wide_rows.cu", "row_elements.cu", "embedding.cu"})
    for (const auto& [name, kernel] : kernels_of(file)) {
      EXPECT_EQ(kernel.spilled, 0) << name;
      const RowKernel* const launch = row_kernel(name);
      if (launch == nullptr) continue;
      SCOPED_TRACE(name);
      ++kernels;
      EXPECT_GT(kernel.registers, 0);
      EXPECT_GE(resident_blocks(kernel, *launch, (is_a100 ? 164 : 228) << 10),
                is_a100 ? launch->blocks_80 : launch->blocks_90)
          << kernel.registers << " registers, " << kernel.shared << " bytes of shared memory";
      if (launch->shared > 0) {
        EXPECT_LT(kernel.shared, 16 << 10) << "launch() counts on it";
      }
      if (!has_code()) continue;
      EXPECT_TRUE(has(kernel, "LDG.E.128"));
      EXPECT_TRUE(has(kernel, "STG.E.128"));
      expect_own_memory(kernel);
    }
  // For fp32, bf16 and fp16; the loss held or not, the norms' gradients with b or without.
  EXPECT_EQ(kernels, 37);
  if (!has_code()) GTEST_SKIP() << "no cuobjdump here: only the registers were checked";
}

// ---- devices

/// Code of a kernel file in the plugin: machine code, or PTX, which the driver compiles for later devices.
struct DeviceCode {
  bool ptx;
  uint32_t architecture;
  auto operator<=>(const DeviceCode&) const = default;
};

template <class T>
T value_at(const std::string& bytes, size_t place) {
  T value{};
  if (place + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}

/// The code of each kernel file. A "fat binary" has a header of 16 bytes: a mark, the version, the header's
/// length in two bytes, and in eight that of the entries. An entry begins with its kind (1: PTX), has the
/// lengths of its header and contents at 4 and 8, and the architecture at 28.
std::vector<std::set<DeviceCode>> codes_of(const std::string& plugin) {
  const std::string mark("\x50\xed\x55\xba\x01\x00\x10\x00", 8);
  std::vector<std::set<DeviceCode>> all;
  for (size_t at = plugin.find(mark); at != std::string::npos; at = plugin.find(mark, at + 1)) {
    std::set<DeviceCode>& codes = all.emplace_back();
    const size_t end = at + 16 + value_at<uint64_t>(plugin, at + 8);
    for (size_t entry = at + 16; entry < end && end <= plugin.size();) {
      codes.insert({value_at<uint16_t>(plugin, entry) == 1, value_at<uint32_t>(plugin, entry + 28)});
      entry += value_at<uint32_t>(plugin, entry + 4) + value_at<uint64_t>(plugin, entry + 8);
    }
  }
  return all;
}

// Machine code runs on later devices of the same major version: that of 8.0 on 8.6 and 8.9, too. PTX of 10.0
// is for 12.0 and all later ones.
TEST(CudaPluginCode, RunsOnEveryDeviceSinceAmpere) {
  if (!has_plugin()) GTEST_SKIP() << "this build has no CUDA plugin";
  const std::vector<std::set<DeviceCode>> files = codes_of(read_file(kPlugin));
  EXPECT_GE(files.size(), 9U);
  for (const std::set<DeviceCode>& codes : files)
    EXPECT_EQ(codes, (std::set<DeviceCode>{{false, 80}, {false, 90}, {false, 100}, {true, 100}}));
}

}  // namespace
}  // namespace megalith::test
