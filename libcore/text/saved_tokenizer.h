#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/json/json.h"

/// The tokenizer that a checkpoint of ours keeps, which later runs read: its files are compared with the
/// checksums of the checkpoint's index (docs/formats/checkpoint.md) by every program that takes them.
namespace megalith {

inline constexpr const char* kIndexFile = "index.json";
inline constexpr const char* kIndexFormat = "megalith-checkpoint";  // its member "format"
inline constexpr const char* kTokenizerFolder = "tokenizer";        // the tokenizer's own files

/// A file of a checkpoint's folder (args.json, tokenizer/vocab.json).
struct IndexedFile {
  std::string name;
  uint64_t bytes = 0, checksum = 0;  // xxh64
};
/// Whether this names a file in a folder, neither a hidden one nor one of somewhere else.
bool is_plain_name(std::string_view name);
/// The member "files" of an index. `name` begins every message (kData).
std::vector<IndexedFile> parse_indexed_files(const Json& index, const std::string& name);
/// kData unless an index's text ends with the checksum of all that stands before it.
void check_index_checksum(std::string_view text, const std::string& name);
/// What stands in such a text before that checksum.
inline constexpr std::string_view kIndexChecksumMember = ",\n \"checksum\": ";

/// The files of a tokenizer in the folder "tokenizer" of `checkpoint` are those that `listed` has of it, with
/// their lengths and checksums, and no others, because which there are decides how they are read. kData, with
/// the file. Nothing where there is no such folder and none is listed.
void check_tokenizer_files(const std::string& checkpoint, std::span<const IndexedFile> listed);

/// The same where `path`, a tokenizer's file or folder that somebody named, is in the folder "tokenizer" of a
/// checkpoint of ours, whose index is read for it; nothing for any other one.
void check_saved_tokenizer(const std::string& path);

}  // namespace megalith
