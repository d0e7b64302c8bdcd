#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "libcore/base/byte_buffer.h"
#include "libcore/text/id_buffer.h"

/// Lines of decimal ids, separated by blanks. In memory they are lists of ids (4 bytes each) that end with
/// Tokenizer::kTextEnd.
namespace megalith {

/// Appends a line for each list of `ids`.
void append_id_rows(const IdBuffer& ids, ByteBuffer& rows);

/// Replaces `ids` with the lists in `rows`, which are lines that end in \n. Returns false if there is
/// anything else than ids of up to seven digits with one blank between them; `ids` is then incomplete.
bool read_id_rows(std::string_view rows, std::vector<int32_t>& ids);

}  // namespace megalith
