#pragma once

namespace megalith {

/// Lets the threads of OpenMP's loops sleep after a few microseconds of waiting. By default GCC's runtime
/// makes them spin for milliseconds, which slows down other programs and, if others compete for the cores,
/// this one (docs/training.md has the figures). The runtime reads GOMP_SPINCOUNT when it is loaded, before
/// main(). So the process sets that variable and starts its program again, once, with the same process id,
/// arguments, files and signals. Does nothing if OMP_WAIT_POLICY or GOMP_SPINCOUNT is set, in a program
/// without OpenMP, or if the program only prints its help or version.
void let_openmp_sleep();

}  // namespace megalith
