#pragma once

#include <functional>

#include "tests/parallel/tensors.h"

namespace megalith {

/// What a call leaves in a copy of `tensor`, in the memory that the communicator takes.
using CallOnCopy = std::function<Tensor(Tensor tensor, const std::function<void(Stream&, View)>& call)>;

/// Compares gather_parts() and reduce_parts() of all types, of several sizes and places, with what their
/// names say. Reductions have to be in rank order. Collective.
void expect_gathered_parts(Communicator&, const CallOnCopy&);
void expect_reduced_parts(Communicator&, const CallOnCopy&);

}  // namespace megalith
