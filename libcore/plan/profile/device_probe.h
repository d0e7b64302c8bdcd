#pragma once

#include <variant>

#include "libcore/ops/backend/backend.h"
#include "libcore/plan/profile/device_profile.h"

namespace megalith {

/// Runs the ops of a profile's points on a device, with operands where a training step finds them: what the
/// op before has made, at one place; weights, kept activations and results, in memory larger than the caches,
/// through which calls go on. Attention's gradient is the exception: what one forward pass left (qkv, the
/// result and lse) and what it writes (dqkv) stay at one place each for all calls of a sample, and only the
/// gradient that it is given goes on.
class DeviceProbe {
 public:
  /// Takes twice `bytes` of the device. kDevice when there is not as much.
  DeviceProbe(Backend&, DType, size_t bytes);

  /// Whether the operands of the point have a place: four times its largest matrix, in fp32, fits `bytes`.
  bool holds(const ProfilePoint&) const;
  /// The point with the price that its op states, which is not run for it.
  ProfilePoint priced(const ProfilePoint&);
  /// Seconds of `times` calls, one after the other, until the device has done all of them.
  double seconds_of(const ProfilePoint&, int64_t times);

 private:
  ConstView input(Shape);     // random values of the dtype
  ConstView made(Shape);      // such values at one place: what the op before has made
  View output(DType, Shape);  // what was there before
  using Op = std::variant<Gemm, LayerNorm, LayerNormGrad, Gelu, GeluGrad, Attention, AttentionGrad>;
  Op op_of(const ProfilePoint&);  // on the next operands
  Op product(const ProfilePoint&);
  Op memory_op(const ProfilePoint&);
  Attention attention(const ProfilePoint&);
  AttentionGrad gradient(const Attention& of);  // which has run
  void call(const Op&);

  Stream stream_;
  DType dtype_;
  size_t bytes_;
  Memory inputs_, outputs_, floats_;
  size_t input_at_ = 0, output_at_ = 0;
};

/// What profile_device() is asked for.
struct ProfileRequest {
  std::string device;   // the planner's name of it
  std::string backend;  // "cpu", "cuda"
  DType dtype = DType::kF32;
  int threads = 0;  // of the CPU's ops; 0: as many as the process may use
  double seconds = 60;
};

/// Measures the device, with a progress line on a terminal. kDevice when it does not answer.
DeviceProfile profile_device(const ProfileRequest&);

}  // namespace megalith
