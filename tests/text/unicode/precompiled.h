#pragma once

#include <memory>
#include <string>

#include "libcore/io/files/file.h"
#include "libcore/text/formats/sentencepiece/sentencepiece_table.h"
#include "libcore/text/unicode/normalizer.h"
#include "tests/text/fixtures.h"

namespace megalith::test {

/// The normalizer that has the charsmap of a SentencePiece model below tests/text/goldens.
inline Normalizer::Precompiled precompiled(const std::string& model) {
  const std::string path = test_data("text/goldens/" + model);
  const std::string charsmap = parse_sentencepiece_table(read_file(path), path).rules.charsmap;
  return {std::make_shared<const Charsmap>(charsmap, path), ""};
}

}  // namespace megalith::test
