#include "libcore/base/utf8.h"
#include "libcore/text/patterns/pattern_parser.h"
#include "libcore/text/pretokenize/split_pattern.h"
#include "tests/fuzz/fuzz.h"

/// The first line is a regular expression, the rest a text that it splits. The pieces must be the whole text.
MEGALITH_FUZZ_TARGET(split_regex) {
  using namespace megalith;
  const std::string input = replace_invalid_utf8(bytes);
  const size_t line = input.find('\n');
  if (line == std::string::npos) return;
  try {
    const SplitPattern pattern = split_pattern(input.substr(0, line));
    const std::string text = input.substr(line + 1);
    std::string pieces;
    for_each_pretoken(pretokenizer({pattern}), text, [&](std::string_view piece) { pieces += piece; });
    if (pieces != text) fail(ErrorKind::kInternal, "pieces are not the text");
  } catch (const UnsupportedPattern&) {
    return;
  }
}
