#include "libcore/json/json.h"

#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/support/compiler.h"

namespace {

/// The number of allocations of this thread that still succeed before one fails; negative: none fails.
thread_local int allocations_left = -1;

}  // namespace

// For this whole program: its allocations fail when a test says so. Not inline: g++ takes a free() that it
// sees in the place of a delete for a mistake. The address sanitizer has operators of its own, which the
// libraries use.
#ifndef __SANITIZE_ADDRESS__
[[gnu::noinline]] void* operator new(size_t bytes) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  void* const block = std::malloc(bytes == 0 ? 1 : bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
  std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, size_t) noexcept {
  std::free(block);
}
#endif

namespace megalith {
namespace {

// simdjson reports a lack of memory by a code, like bad JSON.
TEST(Json, IsNotBadWhereThereIsNoMemory) {
  if (test::kAddressSanitizer) GTEST_SKIP() << "the sanitizer has its own operator new";
  // At its first use simdjson chooses its kernels, in a function that must not throw. A lack of memory there
  // ends the process by std::terminate(), which base/refusals.h turns into 71.
  (void)Json::parse("1", "first use");
  for (const char* text : {R"({"a": [1, "x", {"b": 2.5}]})", "[1000000000000000019884624838656]"}) {
    int refused = 0;
    for (int allocations = 0; allocations < 60; ++allocations) {
      allocations_left = allocations;
      try {
        (void)Json::parse(text, "x");
      } catch (const std::bad_alloc&) {
        ++refused;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kSystem) << allocations << ": " << error.what();
        ++refused;
      }
      allocations_left = -1;
    }
    EXPECT_GE(refused, 5);  // the parser, its buffers, the padded copy and the values
  }
}

// This once crashed: libstdc++ destroyed the copy that it had not made.
TEST(Json, FailsToBeCopiedWhereThereIsNoMemory) {
  if (test::kAddressSanitizer) GTEST_SKIP() << "the sanitizer has its own operator new";
  const std::string text(100, 'x');
  const Json json =
      Json::parse(R"({"text": ")" + text + R"(", "list": [1, ")" + text + R"("], "more": {"a": {}}})", "x");
  int failures = 0;
  const auto with = [&failures](int allocations, const auto& copy) {
    allocations_left = allocations;
    try {
      copy();
    } catch (const std::bad_alloc&) {
      ++failures;
    }
    allocations_left = -1;
  };
  for (int allocations = 0; allocations < 20; ++allocations) {
    with(allocations, [&] { const Json copy = json; });
    Json other = "kept";
    const int before = failures;
    with(allocations, [&] { other = json; });
    EXPECT_TRUE(other == (failures == before ? json : Json("kept")));
  }
  EXPECT_GE(failures, 10);  // each of the two copies makes at least five allocations
  EXPECT_LT(failures, 40);
}

TEST(Json, KeepsIntegersBeyond64BitsAsDoubles) {
  const Json json = Json::parse(
      R"({"a": 1000000000000000019884624838656, "b": -18446744073709551616, "c": [18446744073709551616],
                                    "d": 9223372036854775807, "e": -9223372036854775808, "f": 0.12345678901234567890123})",
      "x");
  EXPECT_EQ(json["a"].as_double(), 1e30);
  EXPECT_FALSE(json["a"].is_int());
  EXPECT_EQ(json["b"].as_double(), -18446744073709551616.0);
  EXPECT_EQ(json["c"].as_array()[0].as_double(), 18446744073709551616.0);
  EXPECT_EQ(json["d"].as_int(), INT64_MAX);
  EXPECT_EQ(json["e"].as_int(), INT64_MIN);
  EXPECT_EQ(json["f"].as_double(), 0.12345678901234567890123);
}

TEST(Json, LeavesDigitsInStringsAlone) {
  const Json json =
      Json::parse(R"({"18446744073709551616": "a\"18446744073709551616\\", "n": 18446744073709551616})", "x");
  EXPECT_EQ(json["18446744073709551616"].as_string(), "a\"18446744073709551616\\");
}

// The expected text is that of Python's json.dumps("…", ensure_ascii=False).
TEST(JsonQuote, EscapesAsPython) {
  EXPECT_EQ(json_quote(std::string_view("\0\b\f\n\r\t\x1f\x7f\"\\/\u00e9", 13)),
            "\"\\u0000\\b\\f\\n\\r\\t\\u001f\x7f\\\"\\\\/\u00e9\"");
}

TEST(Json, StillRefusesWhatIsNoNumber) {
  for (const char* text :
       {"01", "1.", "-", "18446744073709551616x", "018446744073709551616", "1e", "[18446744073709551616"})
    EXPECT_THROW(Json::parse(text, "x"), Error) << text;
}

}  // namespace
}  // namespace megalith
