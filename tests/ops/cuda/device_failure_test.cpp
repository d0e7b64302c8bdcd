// What the CUDA backend says when the emulated device fails. The numbers are those of CUDA's headers.
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/ops/cases.h"
#include "tests/support/emulated_cuda.h"

namespace megalith::test {
namespace {

/// Lets the emulated device of this process fail during the lifetime: each kernel, or each allocation.
class FailingDevice {
 public:
  explicit FailingDevice(int error) { emulated_controls().fault = error; }
  ~FailingDevice() { emulated_controls().fault = 0; }
};

/// The error of a device that fails before its next kernel.
Error error_of(int status) {
  const std::unique_ptr<Backend> backend = make_emulated_backend();
  Stream stream = backend->make_stream();
  Bed bed(stream);
  const View x = bed.put(DType::kF32, {2, 2}, {1, 2, 3, 4});
  const FailingDevice failing(status);
  try {
    run(stream, Activate{.y = x, .x = x});
    stream.synchronize();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::kUsage, "did not throw");
}

TEST(DeviceFailure, OfTheDeviceIsKDevice) {
  for (const int status : {35, 46, 100, 209, 214, 220, 222, 702, 802, 803, 999, 12345}) {
    const Error error = error_of(status);
    EXPECT_EQ(error.kind(), ErrorKind::kDevice) << error.what();
    const std::string number = concat("(error ", status, "); ");
    EXPECT_NE(std::string(error.what()).find(number), std::string::npos) << error.what();
  }
}

TEST(DeviceFailure, OfAKernelOrACallIsABug) {
  for (const int status : {1, 9, 400, 401, 700, 701, 714, 715, 716, 717, 718, 719, 900, 901, 904, 905, 907}) {
    const Error error = error_of(status);
    EXPECT_EQ(error.kind(), ErrorKind::kInternal) << error.what();
    EXPECT_NE(std::string(error.what()).find("report it"), std::string::npos) << error.what();
  }
}

// cuBLASLt only says that it failed; the runtime knows why.
TEST(DeviceFailure, IsNamedByProductsToo) {
  const std::unique_ptr<Backend> backend = make_emulated_backend();
  Stream stream = backend->make_stream();
  Bed bed(stream);
  const View x = bed.put(DType::kF32, {4, 4}, Values(16)), y = bed.empty(DType::kF32, {4, 4});
  const Gemm product{.c = y, .a = x, .b = x};
  run(stream, product);  // before the failure: a product's layouts are made once
  const FailingDevice failing(214);
  try {
    run(stream, product);
    ADD_FAILURE() << "ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    EXPECT_NE(std::string(error.what()).find("uncorrectable ECC error"), std::string::npos) << error.what();
  }
}

TEST(DeviceFailure, OfMemoryNamesWhatIsLeft) {
  const std::unique_ptr<Backend> backend = make_emulated_backend();
  const FailingDevice failing(2);
  try {
    backend->allocate(4096);
    ADD_FAILURE() << "allocated";
  } catch (const NoMemory& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    for (const char* words : {"allocate 4096 bytes", "are free", "--micro-batch-size"})
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(DeviceFailure, OfADriverThatIsTooOldNamesBothVersions) {
  const FailingDevice failing(35);
  try {
    make_emulated_backend();
    ADD_FAILURE() << "made";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    EXPECT_NE(std::string(error.what()).find("the driver supports CUDA 13.0, the plugin was built with 13.0"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace megalith::test
