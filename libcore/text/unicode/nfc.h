#pragma once

#include <string>
#include <string_view>

namespace megalith {

/// Unicode's canonical composition (NFC) of `utf8` (valid) as Hugging Face tokenizers 0.23 makes it:
/// characters that its Unicode does not know stay as they are (see Composition in char_traits.h). Returns
/// `utf8` itself when it changes nothing, else a view of `storage`, which is overwritten.
std::string_view to_nfc(std::string_view utf8, std::string& storage);

}  // namespace megalith
