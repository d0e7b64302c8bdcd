#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith {

/// Unicode's forms of decomposition. As in Hugging Face tokenizers 0.23, whose tables are those of an old
/// version of Unicode: characters added later are unchanged, and no marks.
enum class Decomposition : uint8_t { kNfd, kNfkd };

/// `utf8` (valid) in that form: `utf8` itself if it has it already, else a view of `storage`.
std::string_view decompose(Decomposition form, std::string_view utf8, std::string& storage);

/// Where the first extended grapheme cluster of `utf8` (valid, not empty) ends, in bytes.
size_t cluster_end(std::string_view utf8);

}  // namespace megalith
