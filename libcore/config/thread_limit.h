#pragma once

#include "libcore/options/problems.h"

namespace megalith {

/// The most threads: more than any machine has cores. A larger number is a typing mistake and would exhaust
/// memory.
constexpr int kMaxThreads = 4096;

inline void require_possible_threads(int threads, const char* option, Problems& problems) {
  if (threads > kMaxThreads) problems.add(Opt{option}, " is ", threads, ", wanted at most ", kMaxThreads);
}

}  // namespace megalith
