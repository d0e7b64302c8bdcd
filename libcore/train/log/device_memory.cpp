#include "libcore/train/log/device_memory.h"

#include <string_view>

#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/ops/backend/cuda_plugin.h"

namespace megalith {
namespace {

class DeviceMemoryLog final : public RunObserver {
 public:
  DeviceMemoryLog(size_t free_before, size_t estimated)
      : free_before_(static_cast<double>(free_before)), estimated_(static_cast<double>(estimated)) {}

  void end(const EndReport& report) override {
    if (report.lost) return;
    const double taken = free_before_ - static_cast<double>(cuda_memory(0).left);
    log("device memory: ", format_bytes(taken), " taken, ", format_bytes(estimated_), " estimated (",
        format_fixed(100 * taken / estimated_, 2), " %)");
  }

 private:
  const double free_before_, estimated_;
};

}  // namespace

std::optional<size_t> free_device_memory(const Backend& backend) {
  if (backend.name() != std::string_view("cuda")) return std::nullopt;
  return cuda_memory(0).left;
}

std::unique_ptr<RunObserver> device_memory_log(std::optional<size_t> free_before, size_t estimated) {
  if (!free_before) return nullptr;
  return std::make_unique<DeviceMemoryLog>(*free_before, estimated);
}

}  // namespace megalith
