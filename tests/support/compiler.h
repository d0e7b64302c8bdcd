#pragma once

namespace megalith::test {

// How this program was compiled. Tests that cannot work that way skip themselves.

// Clang's OpenMP runtime, libomp, aborts a process that lacks memory, threads or /dev/shm (exit code 134).
#ifdef __clang__
inline constexpr bool kClang = true;
#else
inline constexpr bool kClang = false;
#endif

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#ifdef __SANITIZE_THREAD__
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
inline constexpr bool kSanitizer = kAddressSanitizer || kThreadSanitizer;

}  // namespace megalith::test
