#include "libcore/base/random.h"

#include <bit>

namespace megalith {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = kMultiplier0 * counter[0], b = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

uint64_t NumpyRandomState::interval(uint64_t max) {
  if (max == 0) return 0;
  const uint64_t mask = ~uint64_t{0} >> std::countl_zero(max);
  for (;;) {
    uint64_t draw = 0;
    if (max <= 0xffffffffu) {
      draw = next32();
    } else {
      const uint64_t high = next32();  // numpy's next_uint64: the high half is drawn first
      draw = (high << 32) | next32();
    }
    if ((draw & mask) <= max) return draw & mask;
  }
}

void NumpyRandomState::intervals(uint64_t max, std::span<uint64_t> out) {
  for (size_t k = 0; k < out.size();) {
    if (max - k > 0xffffffffu) {
      out[k] = interval(max - k);
      ++k;
      continue;
    }
    // A rejected draw is overwritten by the next one: half of the draws may be, and a branch would be
    // mispredicted as often.
    const auto top = static_cast<uint32_t>(max - k);
    const uint32_t mask = ~uint32_t{0} >> std::countl_zero(top);
    const uint32_t least = mask / 2 + 1;  // the mask is the same down to this maximum
    const size_t end = std::min(out.size(), k + (top - least) + 1);
    for (uint32_t limit = top; k < end;) {
      const uint32_t draw = next32() & mask;
      out[k] = draw;
      const uint32_t taken = draw <= limit ? 1 : 0;
      k += taken;
      limit -= taken;
    }
  }
}

}  // namespace megalith
