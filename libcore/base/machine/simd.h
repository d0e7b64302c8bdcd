#pragma once

/// Defines MEGALITH_SIMD where x86-64 intrinsics may be used: on x86-64, unless CMake's option MEGALITH_SIMD
/// is off. Files that are compiled for a special instruction set may include this header, since it includes
/// nothing else.
#if defined(__x86_64__) && !defined(MEGALITH_NO_SIMD)
#define MEGALITH_SIMD
#endif
