#include "libcore/base/machine/gpus.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace megalith {
namespace {

/// The text after "Model:" in a GPU's file; empty if it has none.
std::string model_in(const std::filesystem::path& information) {
  constexpr std::string_view kModel = "Model:";
  std::ifstream file(information);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kModel)) {
      const size_t begin = line.find_first_not_of(" \t", kModel.size());
      return begin == std::string::npos ? std::string() : line.substr(begin);
    }
  return {};
}

}  // namespace

std::vector<std::string> nvidia_gpus(const std::string& folder) {
  std::vector<std::filesystem::path> gpus;
  std::error_code error;
  for (const auto& gpu : std::filesystem::directory_iterator(folder, error)) gpus.push_back(gpu.path());
  // By bus address, as CUDA numbers them with CUDA_DEVICE_ORDER=PCI_BUS_ID.
  std::sort(gpus.begin(), gpus.end());
  std::vector<std::string> names;
  for (const auto& gpu : gpus)
    if (std::string name = model_in(gpu / "information"); !name.empty()) names.push_back(std::move(name));
  return names;
}

}  // namespace megalith
