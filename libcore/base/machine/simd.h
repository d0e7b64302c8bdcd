#pragma once

/// MEGALITH_SIMD is defined where x86-64 intrinsics may be used: on such a processor, unless CMake's option
/// of that name is off. The files of one instruction set may include this too: it includes nothing.
#if defined(__x86_64__) && !defined(MEGALITH_NO_SIMD)
#define MEGALITH_SIMD
#endif
