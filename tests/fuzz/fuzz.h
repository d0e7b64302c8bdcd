#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string_view>

#ifndef MEGALITH_LIBFUZZER
#include <gtest/gtest.h>
#endif

#include "libcore/base/error.h"

/// A fuzz target reads bytes as an input file of one kind and uses the result. It must return, or throw an
/// Error of kind kData. Anything else (another exception, a crash, a sanitizer's report, a long run) is a
/// find.
///
///   MEGALITH_FUZZ_TARGET(tokenizer_json) { read_and_use(bytes); }
///
/// In the tests, a target gets mutations of the files in tests/fuzz/corpus/NAME, always the same ones.
/// MEGALITH_FUZZ_SECONDS=60 tries more mutations for 60 seconds, MEGALITH_FUZZ_SEED selects other mutations,
/// and MEGALITH_FUZZ_KEEP=FILE writes each input to FILE before it is used, so that the input of a crash is
/// in FILE. With the preset "fuzz" (clang), the target is a libFuzzer program, build/fuzz/bin/fuzz_NAME.
/// Every find becomes a test.
#ifdef MEGALITH_LIBFUZZER
#define MEGALITH_FUZZ_TARGET(NAME)                                              \
  static void fuzz_one(std::string_view bytes);                                 \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {     \
    megalith::fuzz::use({reinterpret_cast<const char*>(data), size}, fuzz_one); \
    return 0;                                                                   \
  }                                                                             \
  static void fuzz_one([[maybe_unused]] std::string_view bytes)
#else
#define MEGALITH_FUZZ_TARGET(NAME)                     \
  static void fuzz_one_##NAME(std::string_view bytes); \
  TEST(Fuzz, NAME) {                                   \
    megalith::fuzz::mutate(#NAME, fuzz_one_##NAME);    \
  }                                                    \
  static void fuzz_one_##NAME([[maybe_unused]] std::string_view bytes)
#endif

namespace megalith::fuzz {

using Target = void (*)(std::string_view bytes);

/// Runs the target on one input. Errors of kind kData are expected; others propagate.
void use(std::string_view bytes, Target target);

/// Runs `part` of a target in which errors of these kinds are expected, too.
void accept(std::initializer_list<ErrorKind> kinds, const std::function<void()>& part);

/// Runs the target on the files of its corpus and on mutations of them; a find fails the test.
void mutate(const char* name, Target target);

/// Writes `bytes` to a file for readers that need a path, and returns the path, which is always the same. A
/// reader that looks at the files beside its own gets a folder: "set/config.json". May be called from one
/// thread only.
const char* file_of(std::string_view bytes, const char* name = "input");

}  // namespace megalith::fuzz
