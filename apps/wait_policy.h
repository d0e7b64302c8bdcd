#pragma once

namespace megalith {

/// Lets the threads of OpenMP's loops sleep after a few microseconds of waiting. By default GCC's runtime
/// makes them spin for milliseconds, which takes time from other programs and, if there are any, from this
/// one (docs/training.md has the figures). The runtime reads GOMP_SPINCOUNT when it is loaded, before main(),
/// so the process starts its program again, once, with that variable set: same process id, arguments, files
/// and signals. If OMP_WAIT_POLICY or GOMP_SPINCOUNT is set, it is respected; a program without OpenMP, or
/// one that only prints its help or version, simply continues.
void let_openmp_sleep();

}  // namespace megalith
