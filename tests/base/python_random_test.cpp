// The expected numbers are those of Python 3.11's random.Random.
#include "libcore/base/python_random.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

using Places = std::vector<size_t>;

TEST(PythonRandom, DrawsPythonsNumbers) {
  PythonRandom random(1234);
  EXPECT_EQ(random.uniform(), 0.9664535356921388);
  EXPECT_EQ(random.uniform(), 0.4407325991753527);
  EXPECT_EQ(random.uniform(), 0.007491470058587191);
}

TEST(PythonRandom, TakesRandrangesNumbers) {
  PythonRandom random(5);
  Places drawn;
  for (const size_t n : {1UL, 2UL, 3UL, 4UL, 1000UL, (1UL << 31) + 3}) drawn.push_back(random.below(n));
  EXPECT_EQ(drawn, (Places{0, 1, 2, 0, 860, 1999834075}));
}

// Both of sample()'s ways: a list of what is left, a set of what was taken; and seeds of one word and of two.
TEST(PythonRandom, SamplesAsPythonDoes) {
  struct Case {
    uint64_t seed;
    size_t n, count;
    Places first, second;
  };
  for (const Case& one : {
           Case{1234, 4, 3, {3, 0, 2}, {0, 2, 3}},
           Case{1234, 21, 5, {14, 3, 0, 2, 1}, {2, 3, 11, 7, 0}},
           Case{1234, 22, 5, {14, 3, 0, 2, 18}, {1, 21, 2, 3, 11}},
           Case{0, 85, 6, {49, 53, 5, 33, 65, 62}, {51, 38, 61, 45, 74, 27}},
           Case{7, 86, 6, {41, 19, 50, 83, 6, 9}, {68, 12, 46, 74, 7, 64}},
           Case{1099511627781,
                1000,
                10,
                {516, 529, 275, 679, 948, 28, 543, 776, 837, 854},
                {805, 979, 930, 778, 912, 47, 169, 81, 815, 835}},
           Case{
               1234, 39905, 6, {28883, 7657, 490, 5940, 38156, 2288}, {5500, 6450, 23241, 15519, 1142, 2019}},
       }) {
    PythonRandom random(one.seed);
    EXPECT_EQ(random.sample(one.n, one.count), one.first) << one.seed << " " << one.n;
    EXPECT_EQ(random.sample(one.n, one.count), one.second) << one.seed << " " << one.n;
  }
}

TEST(PythonRandom, ChoosesAsPythonDoes) {
  PythonRandom random(3);
  Places drawn;
  for (int i = 0; i < 12; ++i) drawn.push_back(random.choice(10));
  EXPECT_EQ(drawn, (Places{2, 5, 3, 6, 6, 0, 0, 8, 2, 2, 9, 4}));
}

}  // namespace
}  // namespace megalith
