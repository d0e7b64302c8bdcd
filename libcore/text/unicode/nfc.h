#pragma once

#include <string>
#include <string_view>

namespace megalith {

/// Unicode's canonical composition (NFC) of `utf8` (valid) as in Hugging Face tokenizers 0.23: characters
/// that its version of Unicode does not know are unchanged (see Composition in char_traits.h). Returns `utf8`
/// itself if nothing changes, otherwise a view of `storage`, which is overwritten.
std::string_view to_nfc(std::string_view utf8, std::string& storage);

}  // namespace megalith
