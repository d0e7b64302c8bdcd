#include "libcore/text/unicode/punkt_chars.h"

#include "libcore/base/utf8.h"
#include "libcore/text/unicode/lower_run.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

#include "libcore/text/unicode/punkt_chars.inc"

constexpr uint32_t kCapitalSigma = 0x3A3, kSigma = 0x3C3, kFinalSigma = 0x3C2;

/// Whether the first character that the search around a sigma does not pass over is cased; `backwards`:
/// searches from the end of the text.
bool sees_cased(std::string_view utf8, bool backwards) {
  while (!utf8.empty()) {
    const size_t at = backwards ? character_begin(utf8, utf8.size() - 1) : 0;
    const CodePoint c = code_point_at(utf8.substr(at));
    const PunktChar traits = punkt_char(c.value);
    if (!traits.is_passed_by_sigma()) return traits.is_cased();
    if (backwards)
      utf8.remove_suffix(utf8.size() - at);
    else
      utf8.remove_prefix(c.bytes);
  }
  return false;
}

}  // namespace

PunktChar punkt_char(uint32_t code_point) {
  return PunktChar(kPunktChars[kPunktBlockOf[code_point >> 6] << 6 | (code_point & 63)]);
}

void append_lower(std::string_view utf8, std::string& out) {
  for (size_t at = 0; at < utf8.size();) {
    const auto byte = static_cast<unsigned char>(utf8[at]);
    if (byte < 0x80) {
      out += static_cast<char>(byte >= 'A' && byte <= 'Z' ? byte + 32 : byte);
      ++at;
      continue;
    }
    const CodePoint c = code_point_at(utf8.substr(at));
    if (c.value == kCapitalSigma)
      append_utf8(out, sees_cased(utf8.substr(0, at), true) && !sees_cased(utf8.substr(at + c.bytes), false)
                           ? kFinalSigma
                           : kSigma);
    else if (c.value == kDottedCapitalI)
      out += kLowerDottedI;
    else
      append_utf8(out, lower(kLowerRuns, c.value));
    at += c.bytes;
  }
}

}  // namespace megalith
