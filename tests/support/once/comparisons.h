#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#ifndef MEGALITH_DEFINED
#define MEGALITH_DEFINED extern  // comparisons.cpp defines it as nothing, and so the templates
#endif
// The functions behind gtest's macros for the types that most tests compare: those of EXPECT_EQ, and the
// messages with which EXPECT_NE, EXPECT_LT and so on fail. Only comparisons.cpp compiles them. When each file
// of tests did, they were a third of the tests' machine code. The tests' precompiled header includes this
// file, so no test has to.
#define MEGALITH_PRINT(T) \
  MEGALITH_DEFINED template std::string testing::PrintToString<T>(megalith::test::ConstRef<T>);
#define MEGALITH_EQUAL(T, U)                                                               \
  MEGALITH_DEFINED template testing::AssertionResult testing::internal::CmpHelperEQ<T, U>( \
      const char*, const char*, megalith::test::ConstRef<T>, megalith::test::ConstRef<U>);
#define MEGALITH_ORDER(T, U)                                                                      \
  MEGALITH_DEFINED template testing::AssertionResult testing::internal::CmpHelperOpFailure<T, U>( \
      const char*, const char*, megalith::test::ConstRef<T>, megalith::test::ConstRef<U>, const char*);

namespace megalith {
enum class ErrorKind;  // of libcore/base/error.h
namespace test {
template <class T>
using ConstRef = const T&;
using Empty = char[1];  // ""
using Ints = std::vector<int>;
using Floats = std::vector<float>;
using Strings = std::vector<std::string>;
}  // namespace test
}  // namespace megalith

MEGALITH_PRINT(bool)
MEGALITH_PRINT(int)
MEGALITH_PRINT(unsigned)
MEGALITH_PRINT(long)
MEGALITH_PRINT(unsigned long)
MEGALITH_PRINT(float)
MEGALITH_PRINT(double)
MEGALITH_PRINT(const char*)
MEGALITH_PRINT(const void*)
MEGALITH_PRINT(std::string)
MEGALITH_PRINT(std::string_view)
MEGALITH_PRINT(std::vector<long>)
MEGALITH_PRINT(std::vector<double>)
MEGALITH_PRINT(megalith::test::Ints)
MEGALITH_PRINT(megalith::test::Floats)
MEGALITH_PRINT(megalith::test::Strings)
MEGALITH_PRINT(megalith::ErrorKind)

MEGALITH_EQUAL(int, int)
MEGALITH_EQUAL(long, int)
MEGALITH_EQUAL(long, long)
MEGALITH_EQUAL(unsigned long, unsigned)
MEGALITH_EQUAL(unsigned long, unsigned long)
MEGALITH_EQUAL(double, double)
MEGALITH_EQUAL(std::string, std::string)
MEGALITH_EQUAL(std::string, megalith::test::Empty)
MEGALITH_EQUAL(megalith::test::Ints, megalith::test::Ints)
MEGALITH_EQUAL(megalith::test::Floats, megalith::test::Floats)
MEGALITH_EQUAL(megalith::test::Strings, megalith::test::Strings)
MEGALITH_EQUAL(megalith::ErrorKind, megalith::ErrorKind)

MEGALITH_ORDER(int, int)
MEGALITH_ORDER(long, int)
MEGALITH_ORDER(long, long)
MEGALITH_ORDER(unsigned long, unsigned)
MEGALITH_ORDER(unsigned long, unsigned long)
MEGALITH_ORDER(double, int)
MEGALITH_ORDER(double, double)
MEGALITH_ORDER(std::string, std::string)
MEGALITH_ORDER(std::string, megalith::test::Empty)
