#include "libcore/text/formats/sentencepiece/sentencepiece_table.h"

#include "tests/fuzz/fuzz.h"

/// Reads the contents of a SentencePiece model.
MEGALITH_FUZZ_TARGET(sentencepiece_table) {
  megalith::parse_sentencepiece_table(bytes, "fuzzed");
}
