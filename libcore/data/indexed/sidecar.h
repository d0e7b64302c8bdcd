#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libcore/data/indexed/content.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/stream_part.h"
#include "libcore/json/json.h"
#include "libcore/json/json_fields.h"

namespace megalith {

/// A place in the inputs of a run at which one shard ends and the next begins.
struct ShardEdge {
  int64_t file = 0;  // its number among the inputs; their number at the end
  StreamPlace place = {};
  uint64_t hash = 0;  // XXH64 of up to 4096 bytes of the file behind it; 0 at the end
  bool operator==(const ShardEdge&) const = default;

  template <class V>
  void fields(V&& v) {
    v("file", file);
    v("place", place);
    v("xxh64", Hex64{hash});
  }
};

/// The lines that a shard rejected, in a file of their own.
struct ShardRejects {
  int64_t lines = 0;
  ContentPart content = {};
  bool operator==(const ShardRejects&) const = default;

  template <class V>
  void fields(V&& v) {
    v("lines", lines);
    v("bytes", content.bytes);
    v("xxh64", content.xxh64);
  }
};

/// What the sidecar of a shard's dataset says so that shards of one run are told from those of another.
struct ShardRecord {
  int64_t index = 0, count = 1;
  std::string plan = {};     // ShardPlan::digest()
  std::string content = {};  // ShardPlan::content()
  std::string options = {};  // a hash of the tokenizer and the options that determine the bytes
  ShardEdge begin = {}, end = {};
  std::vector<std::string> datasets = {};  // what the names of the shard's datasets end with: "text_document"
  std::optional<ShardRejects> rejects = {};
  std::optional<std::string> seen = {};  // seen_digest(), of a shard that leaves out what earlier ones have
  bool operator==(const ShardRecord& other) const;

  template <class V>
  void fields(V&& v) {
    v("index", index);
    v("count", count);
    v("plan", plan);
    v("content", content);
    v("options", options);
    v("begin", begin);
    v("end", end);
    v("datasets", datasets);
    v("rejects", rejects);
    v("seen", seen);
  }
};

/// The description of a dataset in PREFIX.json next to it. It is a separate file, since .bin and .idx must be
/// as Megatron writes them and have no room for it. It is optional: a dataset is complete without a sidecar.
/// docs/formats/indexed.md lists the members.
struct Sidecar {
  std::string tokenizer = {};  // the --tokenizer-type that gave the ids
  // The hash of the tokenizer's vocabulary and rules: tokenizers with equal hashes give equal ids. Empty if
  // it is not known.
  std::string tokenizer_hash = {};
  int64_t vocab_size = 0;  // unpadded
  int64_t documents = 0, sequences = 0, tokens = 0;
  int64_t max_token_id = -1;  // -1 if the dataset has no token
  // XXH64 of the .idx, in 16 hexadecimal digits, and of the .bin, part by part. A preprocessed dataset has
  // one part. A merged dataset has the parts of its sources in order, so that a merge need not hash their
  // bytes again. If idx_hash is empty, no hash is known.
  std::string idx_hash = {};
  std::vector<ContentPart> bin_parts = {};
  Json options = Json::object();          // how the dataset was made, for people to read
  std::optional<ShardRecord> shard = {};  // set if the dataset is a shard's

  template <class V>
  void fields(V&& v) {  // see json/json_fields.h
    v("tokenizer", tokenizer);
    v("tokenizer_hash", tokenizer_hash);
    v("vocab_size", vocab_size);
    v("documents", documents);
    v("sequences", sequences);
    v("tokens", tokens);
    v("max_token_id", max_token_id);
    v("idx_xxh64", idx_hash);
    v("bin_parts", bin_parts);
    v("options", options);
    v("shard", shard);
  }
};

std::string sidecar_path(const std::string& prefix);
/// Whether `path` is a file that make_sidecar() wrote. False if the file does not exist.
bool is_sidecar(const std::string& path);

/// Reads the sidecar of a dataset. Returns nothing if PREFIX.json does not exist or is not a sidecar, since a
/// corpus may have that name. Throws kData if the sidecar is damaged, kNoInput if PREFIX.json is not a file.
std::optional<Sidecar> read_sidecar(const std::string& prefix);

/// The text of PREFIX.json.
std::string sidecar_text(const Sidecar& sidecar);
/// Writes PREFIX.json; the caller must call AtomicFile::commit() on the result. If a file of that name exists
/// and is not a sidecar, warns, leaves the file unchanged and returns null.
std::unique_ptr<AtomicFile> make_sidecar(const std::string& prefix, const Sidecar& sidecar);

/// Removes PREFIX.json if it is a sidecar. Called when a dataset is being replaced, since the sidecar would
/// no longer describe it.
void remove_sidecar(const std::string& prefix);

}  // namespace megalith
