#include "libcore/plan/profile/device_profile.h"

#include "tests/fuzz/fuzz.h"

MEGALITH_FUZZ_TARGET(device_profile) {
  megalith::parse_device_profile(bytes, "profile.json");
}
