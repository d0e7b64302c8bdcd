#pragma once

#include <string>

#include "libcore/io/streams/text_reader.h"

namespace megalith {

/// The first place at or behind `from` in a file behind which a record begins: lines (kNone) begin after a
/// line end, paragraphs after a blank line that follows one. The end of the file ({its size, 0}) if there is
/// none. What lies before `from` is not read, so every process that cuts there finds the same place.
/// kNoInput, kIo, kData.
StreamPlace record_behind(const std::string& path, const StreamPlace& from, TextUnit unit);

/// Whether an input is one JSON array to LineReader, whose elements cannot be told apart from its middle on.
bool begins_with_array(const std::string& path);

}  // namespace megalith
