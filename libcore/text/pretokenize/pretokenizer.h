#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace megalith {

/// How byte-level tokenizers split a text into pretokens. Every byte belongs to exactly one.
enum class PretokenPattern : uint8_t { kGpt2 };

/// Finds the first pretokens of `utf8` (not empty): writes where each ends (bytes from the beginning) to
/// `ends` (room for at least kMinEnds) and returns how many it found, at least one. The pretokens after the
/// last end are found by another call, with the text from there on. `utf8` must reach to the end of the text:
/// the pattern may look ahead. Thread-safe. Throws kData if a pretoken has 4 GiB or more.
using FindPretokens = std::function<size_t(std::string_view utf8, std::span<uint32_t> ends)>;
constexpr size_t kMinEnds = 256;

/// The fastest FindPretokens for the pattern on this processor (see MEGALITH_ISA in base/machine/isa.h).
FindPretokens pretokenizer(PretokenPattern pattern);

/// Length in bytes of the pretoken at the start of `utf8` (not empty), by GPT-2's pattern
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// as a regex engine finds it: the first alternative that matches. This is the definition against which the
/// vector kernels are tested.
size_t gpt2_pretoken(std::string_view utf8);

/// Throws the kData of a FindPretokens: a pretoken has `bytes` bytes or more.
[[noreturn]] void refuse_giant_pretoken(size_t bytes);

/// Works as a FindPretokens by calling `first(std::string_view utf8)` again and again, which returns the
/// length of the first pretoken.
template <class First>
size_t find_one_by_one(const First& first, std::string_view utf8, std::span<uint32_t> ends) {
  size_t count = 0, at = 0;
  while (count < ends.size() && at < utf8.size()) {
    const size_t end = at + first(utf8.substr(at));
    if (end > UINT32_MAX) {
      if (count > 0) break;  // the next call counts from here, so this end will fit
      refuse_giant_pretoken(end);
    }
    ends[count++] = static_cast<uint32_t>(at = end);
  }
  return count;
}

template <size_t (*kFirst)(std::string_view utf8)>
size_t find_one_by_one(std::string_view utf8, std::span<uint32_t> ends) {
  return find_one_by_one([](std::string_view rest) { return kFirst(rest); }, utf8, ends);
}

/// Calls `take(std::string_view)` for each pretoken of `utf8`, in order.
template <class Take>
void for_each_pretoken(const FindPretokens& find, std::string_view utf8, Take&& take) {
  std::array<uint32_t, 4 * kMinEnds> ends;
  while (!utf8.empty()) {
    const size_t count = find(utf8, ends);
    size_t at = 0;
    for (size_t i = 0; i < count; at = ends[i++]) take(utf8.substr(at, ends[i] - at));
    utf8.remove_prefix(at);
  }
}

}  // namespace megalith
