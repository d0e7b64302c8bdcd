// As much of cuDNN as tests/gpu_check/gpu_probe.cpp asks for. Names, numbers and signatures are cuDNN's.
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kBadParam = 2000, kNotInitialized = 1001;
constexpr char kProperties[] = "{\"deviceVer\": 900}";

/// A descriptor of device properties.
struct Properties {
  bool has_device = false, is_final = false;
};
Properties properties;

}  // namespace

// NOLINTBEGIN: names and signatures are cuDNN's
#define MEGALITH_EXPORT extern "C" __attribute__((visibility("default")))

MEGALITH_EXPORT size_t cudnnGetVersion() {
  return 91900;
}
MEGALITH_EXPORT int cudnnBackendCreateDescriptor(int type, void** descriptor) {
  properties = {};
  *descriptor = &properties;
  return type == 38 ? kSuccess : kBadParam;
}
MEGALITH_EXPORT int cudnnBackendDestroyDescriptor(void*) {
  return kSuccess;
}
MEGALITH_EXPORT int cudnnBackendSetAttribute(void*, int name, int type, int64_t count, const void* value) {
  int32_t device = -1;
  std::memcpy(&device, value, sizeof device);
  properties.has_device = name == 2700 && type == 23 && count == 1 && device == 0;
  return properties.has_device ? kSuccess : kBadParam;
}
MEGALITH_EXPORT int cudnnBackendFinalize(void*) {
  properties.is_final = properties.has_device;
  return properties.is_final ? kSuccess : kNotInitialized;
}
MEGALITH_EXPORT int cudnnBackendGetAttribute(void*, int name, int type, int64_t wanted, int64_t* count,
                                             void* values) {
  if (!properties.is_final || name != 2702 || type != 24) return kBadParam;
  *count = sizeof kProperties;
  if (values != nullptr)
    std::memcpy(values, kProperties, wanted < *count ? static_cast<size_t>(wanted) : sizeof kProperties);
  return kSuccess;
}
// NOLINTEND
