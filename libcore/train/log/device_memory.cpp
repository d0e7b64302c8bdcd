#include "libcore/train/log/device_memory.h"

#include <string_view>

#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/ops/backend/cuda_plugin.h"

namespace megalith {
namespace {

class DeviceMemoryLog final : public RunObserver {
 public:
  DeviceMemoryLog(const Backend& backend, size_t free_before, size_t estimated)
      : backend_(backend),
        free_before_(static_cast<double>(free_before)),
        estimated_(static_cast<double>(estimated)) {}

  void end(const EndReport& report) override {
    if (report.lost) return;
    const double taken = free_before_ - static_cast<double>(cuda_memory(backend_).left);
    log("device memory: ", format_bytes(taken), " taken, ", format_bytes(estimated_), " estimated (",
        format_fixed(100 * taken / estimated_, 2), " %)");
  }

 private:
  const Backend& backend_;
  const double free_before_, estimated_;
};

}  // namespace

std::optional<cuda::DeviceMemory> device_memory(const Backend& backend) {
  if (backend.name() != std::string_view("cuda")) return std::nullopt;
  return cuda_memory(backend);
}

std::unique_ptr<RunObserver> device_memory_log(const Backend& backend,
                                               const std::optional<cuda::DeviceMemory>& before,
                                               size_t estimated) {
  if (!before) return nullptr;
  return std::make_unique<DeviceMemoryLog>(backend, before->left, estimated);
}

}  // namespace megalith
