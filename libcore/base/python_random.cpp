#include "libcore/base/python_random.h"

#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>

namespace megalith {
namespace {

constexpr size_t kWords = 624;

/// Gives std::mt19937 the state that init_by_array() computes: seed() takes each word from generate().
class ArraySeed {
 public:
  using result_type = uint32_t;

  explicit ArraySeed(uint64_t seed) {
    std::array<uint32_t, 2> key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
    const size_t length = key[1] == 0 ? 1 : 2;
    state_[0] = 19650218;
    for (uint32_t i = 1; i < kWords; ++i) state_[i] = 1812433253U * mixed(i) + i;
    size_t i = 1, j = 0;
    for (size_t left = kWords; left > 0; --left) {
      state_[i] = (state_[i] ^ (mixed(i) * 1664525U)) + key[j] + static_cast<uint32_t>(j);
      step(i);
      j = j + 1 == length ? 0 : j + 1;
    }
    for (size_t left = kWords - 1; left > 0; --left) {
      state_[i] = (state_[i] ^ (mixed(i) * 1566083941U)) - static_cast<uint32_t>(i);
      step(i);
    }
    state_[0] = 0x80000000U;
  }

  template <class Iterator>
  void generate(Iterator begin, Iterator end) const {
    size_t i = 0;
    for (Iterator at = begin; at != end; ++at) *at = state_[i++ % kWords];
  }

 private:
  uint32_t mixed(size_t i) const { return state_[i - 1] ^ (state_[i - 1] >> 30); }
  void step(size_t& i) {
    if (++i < kWords) return;
    state_[0] = state_[kWords - 1];
    i = 1;
  }
  std::array<uint32_t, kWords> state_{};
};

/// The size of a population above which Python's sample() keeps a set of the places that it took; up to it,
/// it keeps a list of those that are left.
size_t set_size(size_t count) {
  if (count <= 5) return 21;
  const double power = std::ceil(std::log(static_cast<double>(count * 3)) / std::log(4.0));
  return 21 + static_cast<size_t>(std::pow(4.0, power));
}

}  // namespace

PythonRandom::PythonRandom(uint64_t seed) {
  ArraySeed words(seed);
  engine_.seed(words);
}

double PythonRandom::uniform() {
  const uint32_t high = next32() >> 5, low = next32() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

size_t PythonRandom::below(size_t n) {
  const int bits = static_cast<int>(std::bit_width(n));
  size_t number = n;
  while (number >= n) number = next32() >> (32 - bits);
  return number;
}

std::vector<size_t> PythonRandom::sample(size_t n, size_t count) {
  std::vector<size_t> taken;
  if (n <= set_size(count)) {
    std::vector<size_t> left(n);
    std::iota(left.begin(), left.end(), size_t{0});
    for (size_t i = 0; i < count; ++i) {
      const size_t place = below(n - i);
      taken.push_back(left[place]);
      left[place] = left[n - i - 1];
    }
    return taken;
  }
  std::set<size_t> known;
  while (taken.size() < count)
    if (const size_t place = below(n); known.insert(place).second) taken.push_back(place);
  return taken;
}

}  // namespace megalith
