#include "libcore/text/tokenizer_lines.h"

#include <sstream>
#include <string>

#include "libcore/base/error.h"
#include "libcore/text/formats/gpt2_files.h"
#include "tests/fuzz/fuzz.h"

/// Reads lines of text, of JSON strings and of ids.
MEGALITH_FUZZ_TARGET(tokenizer_lines) {
  using namespace megalith;
  static const std::string kFolder = concat(MEGALITH_SOURCE_DIR, "/tests/text/goldens/trained/");
  static const ByteLevelTokenizer kTokenizer(read_gpt2_files(kFolder + "vocab.json", kFolder + "merges.txt"));
  const char* const path = fuzz::file_of(bytes, "lines.txt");
  for (const bool json : {false, true}) {
    std::ostringstream out;
    fuzz::accept({ErrorKind::kData}, [&] { TokenizerLines{kTokenizer, json}.encode(path, out); });
    fuzz::accept({ErrorKind::kData}, [&] { TokenizerLines{kTokenizer, json}.decode(path, out); });
  }
}
