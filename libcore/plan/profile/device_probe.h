#pragma once

#include "libcore/ops/backend.h"
#include "libcore/plan/profile/device_profile.h"

namespace megalith {

/// Runs the ops of a profile's points on a device, with operands where a training step finds them: what the
/// op before has made, at one place; weights, kept activations and results, in memory larger than the caches,
/// through which calls go on.
class DeviceProbe {
 public:
  /// Takes twice `bytes` of the device. kDevice when there is not as much.
  DeviceProbe(Backend&, DType, size_t bytes);

  /// Whether the operands of the point have a place.
  bool holds(const ProfilePoint&) const;
  /// The point with the price that its op states.
  ProfilePoint priced(const ProfilePoint&);
  /// Seconds of `times` calls, one after the other, until the device has done all of them.
  double seconds_of(const ProfilePoint&, int64_t times);

 private:
  ConstView input(Shape);          // random values of the dtype
  ConstView made(Shape);           // such values at one place: what the op before has made
  View output(DType, Shape);       // what was there before
  Cost call(const ProfilePoint&);  // runs it once
  Cost call_product(const ProfilePoint&);
  Cost call_memory(const ProfilePoint&);
  /// Attention, whose gradient reads what one forward pass left.
  struct Attended {
    ConstView qkv;
    View out, lse;
  };
  Attended attend(const ProfilePoint&);
  Cost call_gradient(const ProfilePoint&, const Attended&);
  template <class Op>
  Cost done(const Op& op);

  Backend& backend_;
  Stream stream_;
  DType dtype_;
  size_t bytes_;
  Memory inputs_, outputs_, floats_;
  size_t input_at_ = 0, output_at_ = 0;
};

/// What profile_device() is asked for.
struct ProfileRequest {
  std::string device;   // the planner's name of it
  std::string backend;  // "cpu", "cuda", "gpu"
  DType dtype = DType::kF32;
  int threads = 0;  // of the CPU's ops; 0: as many as the process may use
  double seconds = 60;
};

/// Measures the device, with a progress line on a terminal. kDevice when it does not answer.
DeviceProfile profile_device(const ProfileRequest&);

}  // namespace megalith
