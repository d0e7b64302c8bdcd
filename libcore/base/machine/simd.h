#pragma once

/// MEGALITH_SIMD is defined where the intrinsics of x86-64 may be used: on such a processor, unless CMake's
/// option of that name is off. For the files of one instruction set too: it includes nothing.
#if defined(__x86_64__) && !defined(MEGALITH_NO_SIMD)
#define MEGALITH_SIMD
#endif
