#pragma once

#include <variant>

#include "libcore/ops/backend/backend.h"
#include "libcore/plan/profile/device_profile.h"

namespace megalith {

/// Runs the ops of a profile's points on a device, with operands in memory as in a training step. An operand
/// that is the result of the previous op always lies at one address. Weights, kept activations and results
/// lie in memory larger than the caches, and each call uses the next part of it. Attention's gradient is the
/// exception: the results of one forward pass (qkv, the output and lse) and the gradient that it writes
/// (dqkv) stay in place for all calls of a sample; only its incoming gradient advances.
class DeviceProbe {
 public:
  /// Allocates twice `bytes` on the device. kDevice when there is not enough.
  DeviceProbe(Backend&, DType, size_t bytes);

  /// Whether the point's operands fit: whether four operands as large as its largest one, in fp32, take at
  /// most `bytes`.
  bool holds(const ProfilePoint&) const;
  /// The point with flops and bytes set to the cost that its op states, without running the op.
  ProfilePoint priced(const ProfilePoint&);
  /// Seconds of `times` successive calls, until the device has finished all of them.
  double seconds_of(const ProfilePoint&, int64_t times);

 private:
  ConstView input(Shape);     // random values of the dtype
  ConstView made(Shape);      // random values that always lie at one address, like the previous op's result
  View output(DType, Shape);  // not cleared: keeps its previous contents
  using Op = std::variant<Gemm, LayerNorm, LayerNormGrad, Activate, ActivateGrad, Attention, AttentionGrad>;
  Op op_of(const ProfilePoint&);  // the point's op, with the next operands
  Op product(const ProfilePoint&);
  Op memory_op(const ProfilePoint&);
  Attention attention(const ProfilePoint&);
  AttentionGrad gradient(const Attention& of);  // `of` must have run
  void call(const Op&);

  Stream stream_;
  DType dtype_;
  size_t bytes_;
  Memory inputs_, outputs_, floats_;
  size_t input_at_ = 0, output_at_ = 0;
};

/// The parameters of profile_device().
struct ProfileRequest {
  std::string device;   // the planner's name for it
  std::string backend;  // "cpu", "cuda"
  DType dtype = DType::kF32;
  int threads = 0;  // of the CPU's ops; 0: as many as the process may use
  double seconds = 60;
};

/// Measures the device, with a progress line on a terminal. kDevice when it does not answer.
DeviceProfile profile_device(const ProfileRequest&);

}  // namespace megalith
