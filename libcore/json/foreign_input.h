#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libcore/io/streams/line_reader.h"
#include "libcore/json/document_json.h"

namespace megalith {

/// A record of a corpus that is bad, and what is known of its input.
struct BadRecord {
  std::string path;  // "-": stdin
  DocumentFault fault{};
  size_t byte = 0;            // where the fault is in `record`
  std::string_view record{};  // the bytes as they were read
  std::string_view head{};    // the first bytes of the input; empty if they are not at hand
  bool plain_text = false;    // whether text was wanted, not loose JSON
};
/// A line of a batch as a bad record, without its fault. Views the batch's memory. The input's first bytes
/// are at hand if the batch begins the input.
BadRecord bad_record(std::string path, const LineBatch& batch, size_t line);

/// What the input seems to be that is neither loose JSON nor text in UTF-8, and the option or command that
/// makes it readable: Parquet in a pipe, UTF-16, indented JSON, CSV or, where loose JSON was wanted, plain
/// text. Empty if it may well be what was wanted.
std::string other_form(const BadRecord& bad);

/// The command that makes UTF-8 of an input whose record has a byte that is not. Empty unless the record
/// looks like Latin-1 (a lone byte above 0x9F among ASCII) or Windows-1252 (also bytes from 0x80 to 0x9F).
std::string other_encoding(const BadRecord& bad);

/// other_form(), or other_encoding() if that is empty.
std::string advice_on(const BadRecord& bad);

/// The first problem of a text that should be UTF-8: invalid bytes, or UTF-16 without a byte order mark.
std::optional<DocumentProblem> check_text(std::string_view text);

}  // namespace megalith
