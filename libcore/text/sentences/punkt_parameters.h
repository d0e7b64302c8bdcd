#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace megalith {

/// Lets sets of strings be searched for a std::string_view.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

/// What a Punkt model has learned about a language (Kiss and Strunk, Unsupervised Multilingual Sentence
/// Boundary Detection, 2006), as in the files of NLTK's punkt_tab. Words are in lower case, numbers are
/// "##number##".
struct PunktParameters {
  using Words = std::unordered_set<std::string, TextHash, std::equal_to<>>;
  Words abbreviations;      // without their last period
  Words sentence_starters;  // words that often begin a sentence
  Words collocations;       // "first\tsecond": words around a period that does not end a sentence
  std::unordered_map<std::string, uint32_t, TextHash, std::equal_to<>> contexts;  // see OrthoContext
  std::string hash;  // SHA-256 of the files, which identifies the model
};

/// How a word occurred in training: its position (at the beginning of a sentence, inside one, unknown) and
/// its case. Flags of PunktParameters::contexts.
enum OrthoContext : uint32_t {
  kBeginsUpper = 2,
  kInsideUpper = 4,
  kUnknownUpper = 8,
  kBeginsLower = 16,
  kInsideLower = 32,
  kUnknownLower = 64,
  kSeenUpper = kBeginsUpper | kInsideUpper | kUnknownUpper,
  kSeenLower = kBeginsLower | kInsideLower | kUnknownLower,
};

/// Reads collocations.tab, sent_starters.txt, abbrev_types.txt and ortho_context.tab of `folder`. Throws
/// kNoInput for a missing file, kData for a malformed line.
PunktParameters read_punkt_parameters(const std::string& folder);

/// The folder tokenizers/punkt_tab/LANGUAGE below one of the folders where NLTK looks: those of NLTK_DATA, of
/// the user, of the Python environment and of the system. Throws kUsage if `language` is not the name of a
/// language, kNoInput if there is no such folder, with the folders and the command that fetches it.
std::string find_punkt_folder(const std::string& language);

}  // namespace megalith
