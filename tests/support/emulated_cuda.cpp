#include "tests/support/emulated_cuda.h"

#include "libcore/base/plugins/plugin.h"
#include "libcore/threads/last_wait.h"

namespace megalith::test {
namespace {

Plugin emulated_plugin() {
  return Plugin("libmegalith_cuda.so",
                {.folders = {emulated_cuda_folder()}, .if_missing = "", .if_library_missing = ""});
}

}  // namespace

std::string emulated_cuda_folder() {
  return MEGALITH_BINARY_DIR "/emulated";
}

std::unique_ptr<Backend> make_emulated_backend(int device) {
  return std::unique_ptr<Backend>(
      emulated_plugin().function<Backend*(int, const LastWaits&)>("megalith_cuda_backend")(device, {}));
}

emulator::Controls& emulated_controls() {
  return *emulated_plugin().function<emulator::Controls*()>("megalith_emulator_controls")();
}

}  // namespace megalith::test
