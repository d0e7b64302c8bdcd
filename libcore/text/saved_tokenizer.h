#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/json/json_fields.h"

/// The tokenizer that a Megalith checkpoint keeps for later runs. Every program that reads this tokenizer
/// compares its files with the checksums in the checkpoint's index (docs/formats/checkpoint.md).
namespace megalith {

inline constexpr const char* kIndexFile = "index.json";
/// The value of the member "format" in an index.
inline constexpr const char* kIndexFormat = "megalith-checkpoint";
/// The folder of the tokenizer's files in a checkpoint.
inline constexpr const char* kTokenizerFolder = "tokenizer";

/// A file of a checkpoint's folder (args.json, tokenizer/vocab.json).
struct IndexedFile {
  std::string name;
  uint64_t bytes = 0, checksum = 0;  // xxh64

  template <class V>
  void fields(V&& v) {  // see json/json_fields.h
    v("name", name);
    v("bytes", bytes);
    v("xxh64", Hex64{checksum});
  }
};
/// Whether `name` is the plain name of a file in a folder: not hidden, and without a path.
bool is_plain_name(std::string_view name);
/// Throws kData unless each name in `files`, those of the index `name`, stays within the checkpoint's folder.
void check_indexed_files(std::span<const IndexedFile> files, const std::string& name);
/// Throws kData unless `text`, that of an index, ends with the checksum of everything before the checksum.
void check_index_checksum(std::string_view text, const std::string& name);
/// The text right before the checksum in an index.
inline constexpr std::string_view kIndexChecksumMember = ",\n \"checksum\": ";

/// Checks that the folder "tokenizer" of `checkpoint` holds exactly the tokenizer files in `listed`, with
/// their lengths and checksums. An additional file is an error too: which files exist decides how they are
/// read. Throws kData that names the file. Does nothing if there is no such folder and no such file is
/// listed.
void check_tokenizer_files(const std::string& checkpoint, std::span<const IndexedFile> listed);

/// If `path`, a tokenizer's file or folder that a user named, is in the folder "tokenizer" of a Megalith
/// checkpoint, reads that checkpoint's index and calls check_tokenizer_files(). Does nothing for any other
/// path.
void check_saved_tokenizer(const std::string& path);

}  // namespace megalith
