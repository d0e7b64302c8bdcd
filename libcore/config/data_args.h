#pragma once

#include <array>
#include <string>
#include <vector>

namespace megalith {

/// The words in the file of --data-args-path, which stand for those of --data-path. kNoInput, kIo; kUsage if
/// the file holds none, or is no text.
std::vector<std::string> read_data_args(const std::string& file);

/// The words in the file of --per-split-data-args-path, which stand for those of --train-data-path,
/// --valid-data-path and --test-data-path: a JSON object with the members "train", "valid" and "test", each
/// the words in one text or a list of words, or null or missing. kNoInput, kIo; kUsage for other contents.
std::array<std::vector<std::string>, 3> read_split_data_args(const std::string& file);

}  // namespace megalith
