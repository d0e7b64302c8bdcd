#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "libcore/data/shards/shard_plan.h"
#include "libcore/io/streams/text_reader.h"
#include "libcore/options/fields.h"

namespace megalith {

inline std::vector<EnumName<TextUnit>> enum_names(TextUnit) {
  return {{"none", TextUnit::kNone}, {"file", TextUnit::kFile}, {"paragraph", TextUnit::kParagraph}};
}

/// Help of the option --text of every program that reads a corpus.
inline constexpr const char* kTextHelp =
    "Read plain text in UTF-8, not loose JSON. file: each file is a document. paragraph: consecutive lines "
    "between blank ones are one.";

/// Adds a problem if keys of JSON are named although the input is plain text.
void require_no_keys(const std::vector<std::string>& json_keys, TextUnit unit, Problems& problems);

/// What the system says of a file.
struct FileFacts {
  std::pair<dev_t, ino_t> id;
  uint64_t size = 0;     // in bytes
  int64_t modified = 0;  // nanoseconds
  bool regular = false;
};
/// Nothing if there is no such file, or it cannot be reached; errno then says why.
std::optional<FileFacts> facts_of(const std::string& path);

/// A file that `inputs` of corpus_entries() names. Of a file in a folder the facts are known.
struct CorpusFile {
  std::string path;
  std::optional<FileFacts> facts = {};
};

/// The files that `inputs` names, in its order. A pattern stands for the files that match, a folder for the
/// .json, .jsonl and .parquet files below it (for texts: the .txt files), also compressed, both in byte order
/// of their paths. Of folders, the JSON files that our programs write beside their outputs (sidecars, states
/// of runs, records of shards) are left out, and a file is taken from folders only once. Only files of a
/// folder whose names end with .json are opened, and only their beginnings are read. kNoInput if a pattern or
/// a folder has no file.
std::vector<CorpusFile> corpus_entries(const std::vector<std::string>& inputs, TextUnit unit);
/// The paths of these files.
std::vector<std::string> corpus_files(const std::vector<std::string>& inputs, TextUnit unit);

/// The names of objects in these lists, files of one name a line; blank lines are left out. kNoInput if a
/// list does not exist or has no name.
std::vector<std::string> listed_objects(const std::vector<std::string>& lists);

/// The files of corpus_files() as shards divide them. kNoInput if one does not exist, kUsage if one is not a
/// regular file.
std::vector<PlannedFile> planned_files(const std::vector<std::string>& inputs, TextUnit unit);

inline std::vector<EnumName<ShardBy>> enum_names(ShardBy) {
  return {{"bytes", ShardBy::kBytes}, {"files", ShardBy::kFiles}};
}
/// Help of the option --shard-by of the programs that make or show a plan.
inline constexpr const char* kShardByHelp =
    "bytes: cut the inputs in parts of equal size: plain files at line ends, zstd with a seek table and BGZF "
    "where a member begins, Parquet where a row group begins; JSON arrays and other compressed files stay "
    "whole. files: cut between files.";

}  // namespace megalith
