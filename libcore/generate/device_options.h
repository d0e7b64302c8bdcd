#pragma once

#include <string>

#include "libcore/options/fields.h"

namespace megalith {

/// Where a model runs: the options that megalith-generate and megalith-eval share.
struct DeviceOptions {
  int threads = 0;
  std::string device = "cpu";

  template <class V>
  void fields(V&& v) {
    v("threads", threads, "Threads of the CPU; 0: all of this machine.", between(0, 4096));
    v("device", device,
      "Where the model runs; cuda: the first device; gpu: that device, or the CPU if there is none.",
      one_of({"cpu", "cuda", "gpu"}));
  }
};

}  // namespace megalith
