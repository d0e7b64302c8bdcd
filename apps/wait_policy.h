#pragma once

namespace megalith {

/// Lets threads of OpenMP's loops sleep while they wait, after some microseconds. By default GCC's runtime
/// has them spin for milliseconds, which takes other programs' time and, beside these, more of its own
/// (docs/training.md has the figures). The runtime reads GOMP_SPINCOUNT when it is loaded, before main(), so
/// the process starts its program again, once, with that variable set: same id, arguments, files and signals.
/// Whoever set OMP_WAIT_POLICY or GOMP_SPINCOUNT keeps what was set; a program without OpenMP, and one that
/// only prints its help or version, goes on as it is.
void let_openmp_sleep();

}  // namespace megalith
