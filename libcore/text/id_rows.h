#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "libcore/base/byte_buffer.h"
#include "libcore/text/id_buffer.h"

/// Lines of decimal ids, separated by blanks. In memory they are lists of ids (4 bytes each) that end with
/// Tokenizer::kTextEnd.
namespace megalith {

/// The digits of each id of a vocabulary with a blank, so that writing an id is a copy of eight bytes.
class IdTexts {
 public:
  /// For the ids below `size`; those from a million on are not kept. Takes 8 bytes and 2 ns for each.
  explicit IdTexts(size_t size);

 private:
  friend void append_id_rows(const IdBuffer& ids, const IdTexts& texts, ByteBuffer& rows);
  /// Writes an id and a blank, and returns their end. 11 bytes may be written.
  char* write(char* at, int32_t id) const;

  std::vector<uint64_t> texts_;  // up to seven bytes, and in the highest byte their number
};

/// Appends a line for each list of `ids`.
void append_id_rows(const IdBuffer& ids, const IdTexts& texts, ByteBuffer& rows);

/// Replaces `ids` with the lists in `rows`, which are lines that end in \n. Returns false if there is
/// anything else than ids of up to seven digits with one blank between them; `ids` is then incomplete.
bool read_id_rows(std::string_view rows, std::vector<int32_t>& ids);

}  // namespace megalith
