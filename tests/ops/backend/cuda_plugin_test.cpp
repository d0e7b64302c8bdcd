#include "libcore/ops/backend/cuda_plugin.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/ops/cases.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

/// The backend of the first device; if there is none, null, with the reason in `why`.
std::unique_ptr<Backend> device_backend(std::string& why) {
  try {
    return make_cuda_backend(0);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice) << error.what();
    why = error.what();
    return nullptr;
  }
}

// Without the plugin, the message lists the folders that were searched; with it, it says whether the driver
// or the device is missing.
TEST(CudaPlugin, SaysWhyThereIsNoDevice) {
  const Variable folders("MEGALITH_CUDA_LIBS", ""),
      loader("LD_LIBRARY_PATH", "");  // so that neither variable adds a folder
  std::string why;
  if (device_backend(why)) GTEST_SKIP() << "a device answers";
  const bool no_plugin = why.find("libmegalith_cuda.so is in none of ") != std::string::npos;
  const bool no_library = why.find(" needs lib") != std::string::npos;
  const bool no_driver = why.find("cuda: no NVIDIA driver") != std::string::npos;
  const bool no_device = why.find("cuda: no device") != std::string::npos;
  EXPECT_TRUE(no_plugin || no_library || no_driver || no_device) << why;
  EXPECT_EQ(no_plugin, !std::filesystem::exists(concat(MEGALITH_BINARY_DIR, "/lib/libmegalith_cuda.so")))
      << why;
}

TEST(CudaPlugin, IsLookedForInTheNamedFoldersFirst) {
  const TempDir first, second;
  const Variable folders("MEGALITH_CUDA_LIBS",
                         concat(first.path().string(), ":/no/such/folder::", second.path().string()));
  const Variable loader("LD_LIBRARY_PATH", concat(second.path().string(), ":", first.path().string()));
  const std::vector<std::string> found = cuda_library_folders();
  ASSERT_GE(found.size(), 3u);
  EXPECT_EQ(found[0], first.path().string());
  EXPECT_EQ(found[1], second.path().string());
  EXPECT_EQ(std::count(found.begin(), found.end(), second.path().string()), 1);
  EXPECT_EQ(std::count(found.begin(), found.end(), "/no/such/folder"), 0);
  EXPECT_EQ(found[2], concat(MEGALITH_BINARY_DIR, "/lib")) << "beside the program";
}

TEST(CudaPlugin, FindsTheLibrariesOfAPythonEnvironment) {
  const TempDir root;
  const std::string library = (root / "lib/python3.9/site-packages/nvidia/cublas/lib");
  ASSERT_EQ(run_command(concat("mkdir -p ", (root / "bin"), " ", library)).code, 0);
  const Variable path("PATH", (root / "bin"));
  EXPECT_EQ(cuda_library_folders().back(), library);
}

TEST(CudaPlugin, RefusesAFileThatIsNoLibrary) {
  const TempDir folder;
  write_file((folder / "libmegalith_cuda.so"), "text");
  const Variable folders("MEGALITH_CUDA_LIBS", folder.path().string());
  std::string why;
  ASSERT_EQ(device_backend(why), nullptr);
  EXPECT_NE(why.find(concat("cannot load ", (folder / "libmegalith_cuda.so"))), std::string::npos) << why;
}

TEST(CudaPlugin, RefusesAnUnknownKindOfDevice) {
  EXPECT_STREQ(make_backend("cpu")->name(), "cpu");
  try {
    make_backend("tpu");
    ADD_FAILURE() << "made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("\"tpu\""), std::string::npos) << error.what();
  }
}

TEST(CudaPlugin, FallsBackToTheCpuForGpuOnly) {
  std::string why;
  if (device_backend(why)) GTEST_SKIP() << "a device answers";
  EXPECT_STREQ(make_backend("gpu")->name(), "cpu");
  EXPECT_THROW(make_backend("cuda"), Error);
}

TEST(CudaDevice, AgreesWithTheReference) {
  std::string why;
  const std::unique_ptr<Backend> backend = device_backend(why);
  if (!backend) GTEST_SKIP() << why;
  Stream stream = backend->make_stream();
  for (const OpCase& c : op_cases()) {
    Bed bed(stream);
    for (const Outcome& outcome : c.run(bed)) EXPECT_EQ(disagreement(outcome), "") << c.name;
  }
}

// What tools/gpu_check --quick runs.
TEST(CudaDevice, AgreesInOneCaseOfEachOp) {
  std::string why;
  const std::unique_ptr<Backend> backend = device_backend(why);
  if (!backend) GTEST_SKIP() << why;
  Stream stream = backend->make_stream();
  std::set<std::string> ops;
  for (const OpCase& c : op_cases()) {
    if (!ops.insert(c.name.substr(0, c.name.find(' '))).second) continue;
    Bed bed(stream);
    for (const Outcome& outcome : c.run(bed)) EXPECT_EQ(disagreement(outcome), "") << c.name;
  }
  EXPECT_GT(ops.size(), 20U);
}

TEST(CudaDevice, RepeatsBitForBit) {
  std::string why;
  const std::unique_ptr<Backend> backend = device_backend(why);
  if (!backend) GTEST_SKIP() << why;
  Stream stream = backend->make_stream();
  for (const OpCase& c : op_cases()) {
    Bed first(stream, false), second(stream, false);
    const std::vector<Outcome> once = c.run(first), again = c.run(second);
    for (size_t i = 0; i < once.size(); ++i)
      EXPECT_EQ(once[i].got, again[i].got) << c.name << " " << once[i].what;
  }
}

}  // namespace
}  // namespace megalith::test
