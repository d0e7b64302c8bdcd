#pragma once

#include "libcore/ops/cpu/kernels/kernels.h"
#include "libcore/tensor/view.h"

namespace megalith::cpu {

/// Dense tensors of equal extents, worked on by all of the thread's cores. fp32, bf16 and fp16 may meet; in
/// other types a copy's two sides must be the same, and no sum is made (kInternal).
void copy_elements(const Kernels&, const View& to, const ConstView& from);
void add_elements(const Kernels&, const View& to, const ConstView& from);  // to += from
void fill_elements(const Kernels&, const View& to, double value);          // of any type

}  // namespace megalith::cpu
