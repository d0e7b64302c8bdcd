#include "tests/support/emulated_cuda.h"

#include "libcore/base/plugins/plugin.h"
#include "libcore/threads/last_wait.h"

namespace megalith::test {
namespace {

/// A plugin in the place of CUDA's, in that folder of the build.
Plugin plugin_in(const std::string& folder) {
  return Plugin("libmegalith_cuda.so", {.folders = {folder}, .if_missing = "", .if_library_missing = ""});
}
Plugin counting_plugin() {
  return plugin_in(MEGALITH_BINARY_DIR "/counting");
}

std::unique_ptr<Backend> make_backend_of(const Plugin& plugin, int device) {
  return std::unique_ptr<Backend>(
      plugin.function<Backend*(int, const LastWaits&)>("megalith_cuda_backend")(device, {}));
}
emulator::Controls& controls_of(const Plugin& plugin) {
  return *plugin.function<emulator::Controls*()>("megalith_emulator_controls")();
}

}  // namespace

std::string emulated_cuda_folder() {
  return MEGALITH_BINARY_DIR "/emulated";
}

std::unique_ptr<Backend> make_emulated_backend(int device) {
  return make_backend_of(plugin_in(emulated_cuda_folder()), device);
}

emulator::Controls& emulated_controls() {
  return controls_of(plugin_in(emulated_cuda_folder()));
}

bool has_counting_device() {
#ifdef MEGALITH_COUNTING_DEVICE
  return true;
#else
  return false;
#endif
}

std::unique_ptr<Backend> make_counting_backend() {
  return make_backend_of(counting_plugin(), 0);
}

emulator::Controls& counting_controls() {
  return controls_of(counting_plugin());
}

}  // namespace megalith::test
