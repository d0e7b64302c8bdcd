#pragma once

namespace megalith {

/// Lets threads of OpenMP's loops sleep while they wait. By default GCC's runtime has them spin for
/// milliseconds, which costs on a machine with other work: on 2 cores with busy neighbours a small step with
/// 2 threads took 23 to 678 ms, and 6 to 16 ms when they sleep (2026-11-22, commit d1cd163). The runtime
/// reads OMP_WAIT_POLICY when it is loaded, before main(), so the process starts its program again, once,
/// with the variable set: same id, arguments, files and signals. Whoever set OMP_WAIT_POLICY or
/// GOMP_SPINCOUNT keeps what was set; a program without OpenMP, and one that only prints its help or version,
/// goes on as it is.
void let_openmp_sleep();

}  // namespace megalith
