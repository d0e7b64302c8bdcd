#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace megalith {

/// GPT-2's alphabet, which has a printable character for each byte. vocab.json, merges.txt and tokenizer.json
/// use it, since text files cannot hold every byte. The printable bytes of Latin-1 ('!'..'~', U+00A1..U+00AC,
/// U+00AE..U+00FF) are their own characters; the other 68 become U+0100 onwards, in order.
uint32_t byte_to_code_point(uint8_t byte);

/// Writes bytes in this alphabet: "Ġhello" for " hello".
std::string to_byte_alphabet(std::string_view bytes);
/// Reads this alphabet: " hello" for "Ġhello"; nothing if a character is not in the alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view utf8);

/// The byte that a token such as "<0x41>" stands for, as SentencePiece writes bytes; -1: it stands for none.
int byte_of_token(std::string_view text);

}  // namespace megalith
