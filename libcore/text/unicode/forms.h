#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

/// Unicode's forms of decomposition, as in Hugging Face tokenizers 0.23. Its tables are those of an old
/// version of Unicode, which neither decomposes characters that were added later nor knows them as marks.
enum class Decomposition : uint8_t { kNfd, kNfkd };

/// `utf8` (valid) in that form: `utf8` itself if it has it already, else a view of `storage`.
std::string_view decompose(Decomposition form, std::string_view utf8, std::string& storage);

/// Appends the NFC of `utf8` (valid) by the tables of utf8proc. to_nfc() in nfc.h is that of the reference.
void append_composed(std::string_view utf8, std::string& out);

/// Where the first extended grapheme cluster of `utf8` (valid, not empty) ends, in bytes.
size_t cluster_end(std::string_view utf8);

}  // namespace megalith
