#include "libcore/doctor/library_checks.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/base/machine/gpus.h"
#include "libcore/base/plugins/plugin.h"
#include "libcore/base/text.h"
#include "libcore/ops/backend/cuda_plugin.h"

namespace megalith {
namespace {
using State = Finding::State;

bool has_plugin(const std::vector<std::string>& folders, std::string_view plugin) {
  const std::vector<std::string> plugins = plugins_in(folders);
  return std::find(plugins.begin(), plugins.end(), plugin) != plugins.end();
}

Finding check_plugin(const PluginFacts& plugin) {
  const std::string file = concat("libmegalith_", plugin.name, ".so"), check = concat("plugin ", plugin.name);
  if (*plugin.package != '\0' && !has_plugin(own_library_folders(), plugin.name))
    return {.check = check,
            .state = State::kWarning,
            .text = concat(plugin.purpose, ": this build has no ", file),
            .remedy = concat("install the package ", plugin.package, " and build Megalith again")};
  try {
    const Plugin opened(file);
    return {.check = check, .state = State::kGood, .text = plugin.purpose, .remedy = {}};
  } catch (const Error& error) {
    Finding found = finding_of(check, State::kBad, error.what());
    found.text = concat(plugin.purpose, ": ", found.text);
    return found;
  }
}

/// The driver's version, as its file of /proc says it; empty if none is loaded.
std::string driver() {
  std::string line;
  std::getline(std::ifstream("/proc/driver/nvidia/version"), line);
  return line;
}

std::string version_of_cuda(int number) {
  return concat(number / 1000, '.', number % 1000 / 10);
}

/// The first device that answers, and that its plugin runs.
Findings answering_device() {
  const cuda::DeviceFacts facts = cuda_facts(0);
  return {{.check = "GPU",
           .state = State::kGood,
           .text = concat(facts.name, ", compute capability ", facts.major, '.', facts.minor, ", ",
                          format_bytes(static_cast<double>(facts.memory)), ", driver for CUDA ",
                          version_of_cuda(facts.driver)),
           .remedy = {}},
          {.check = "plugin cuda", .state = State::kGood, .text = "--device cuda", .remedy = {}}};
}

}  // namespace

Findings check_plugins() {
  Findings findings;
  for (const PluginFacts& plugin : kPlugins)
    if (std::string_view(plugin.name) != "cuda") findings.push_back(check_plugin(plugin));
  return findings;
}

Findings check_gpu() {
  const std::vector<std::string> devices = nvidia_gpus();
  const std::string loaded = driver();
  if (devices.empty() && loaded.empty() && !has_plugin(cuda_library_folders(), "cuda"))
    return {{.check = "GPU",
             .state = State::kGood,
             .text = "neither an NVIDIA driver nor the CUDA plugin; runs use the CPU",
             .remedy = {}}};
  try {
    return answering_device();
  } catch (const Error& error) {
    Finding found = finding_of("GPU", State::kWarning, error.what());
    if (!devices.empty()) found.text = concat(join(devices, ", "), " (", loaded, "): ", found.text);
    return {found};
  }
}

}  // namespace megalith
