#include "libcore/text/unicode/reference_chars.h"

#include <algorithm>
#include <iterator>

#include "libcore/base/utf8.h"
#include "libcore/text/unicode/lower_run.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

#include "libcore/text/unicode/reference_chars.inc"

}  // namespace

ReferenceChar reference_char(uint32_t code_point) {
  return ReferenceChar(kReferenceChars[kReferenceBlockOf[code_point >> 6] << 6 | (code_point & 63)]);
}

void append_reference_lower(std::string_view utf8, std::string& out) {
  for (size_t at = 0; at < utf8.size();) {
    const CodePoint c = code_point_at(utf8.substr(at));
    if (c.value == kDottedCapitalI)
      out += kLowerDottedI;
    else
      append_utf8(out, lower(kReferenceLowerRuns, c.value));
    at += c.bytes;
  }
}

}  // namespace megalith
