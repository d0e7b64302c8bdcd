#include <algorithm>
#include <filesystem>

#include "libcore/text/sentences/punkt_parameters.h"
#include "libcore/text/sentences/sentence_splitter.h"
#include "tests/fuzz/fuzz.h"

/// Reads a Punkt model, whose four files the input holds with a NUL between them, and splits a text by it.
MEGALITH_FUZZ_TARGET(punkt_model) {
  using namespace megalith;
  std::filesystem::path folder;
  for (const char* name : {"punkt/collocations.tab", "punkt/sent_starters.txt", "punkt/abbrev_types.txt",
                           "punkt/ortho_context.tab"}) {
    const size_t end = std::min(bytes.find('\0'), bytes.size());
    folder = std::filesystem::path(fuzz::file_of(bytes.substr(0, end), name)).parent_path();
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  for (const auto blanks : {SentenceSplitter::Blanks::kDrop, SentenceSplitter::Blanks::kKeep})
    SentenceSplitter(read_punkt_parameters(folder), blanks)
        .split_in_parts("Dr. Smith came at 5 p.m. He left. \"Why?\" she asked...\n\nNo. 7 of 9. ",
                        [](auto) {});
}
