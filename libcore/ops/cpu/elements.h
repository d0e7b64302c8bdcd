#pragma once

#include "libcore/ops/cpu/kernels/kernels.h"
#include "libcore/tensor/view.h"

namespace megalith::cpu {

/// Element-wise operations on dense tensors with equally many elements, on all threads of the CPU ops. fp32,
/// bf16 and fp16 may be mixed. Tensors of other types can only be filled, or copied to the same type;
/// otherwise throws kInternal.
void copy_elements(const Kernels&, const View& to, const ConstView& from);
void add_elements(const Kernels&, const View& to, const ConstView& from);  // to += from
void fill_elements(const Kernels&, const View& to, double value);          // `to` may have any type

}  // namespace megalith::cpu
