#pragma once

#include "libcore/ops/cpu/kernels/kernels.h"
#include "libcore/tensor/view.h"

namespace megalith::cpu {

/// Dense tensors of equal extents, processed on all of the calling thread's cores. fp32, bf16 and fp16 may be
/// mixed; for other types, both sides of a copy must be equal, and there is no addition (kInternal).
void copy_elements(const Kernels&, const View& to, const ConstView& from);
void add_elements(const Kernels&, const View& to, const ConstView& from);  // to += from
void fill_elements(const Kernels&, const View& to, double value);          // of any type

}  // namespace megalith::cpu
