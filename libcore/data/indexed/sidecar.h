#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libcore/data/indexed/content.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"

namespace megalith {

/// What PREFIX.json next to a dataset says about it. It is a separate file, since .bin and .idx must stay as
/// Megatron writes them and have no room for it. A dataset without one is complete. docs/formats/indexed.md
/// lists the members.
struct Sidecar {
  std::string tokenizer = {};  // its --tokenizer-type
  // The hash of its vocabulary and rules: equal hashes encode alike. Empty: not known.
  std::string tokenizer_hash = {};
  int64_t vocab_size = 0;  // unpadded
  int64_t documents = 0, sequences = 0, tokens = 0;
  int64_t max_token_id = -1;  // -1: there is no token
  // XXH64 of the .idx, 16 hexadecimal digits, and of the .bin in the parts in which it was written: one part
  // for a preprocessed dataset; for a joined one those of its sources in order, so that a merge need not hash
  // their bytes again. idx_hash empty: both are unknown.
  std::string idx_hash = {};
  std::vector<ContentPart> bin_parts = {};
  Json options = Json::object();  // how it was made, for people

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
  }
};

std::string sidecar_path(const std::string& prefix);
/// Whether `path` is a JSON file that make_sidecar() made; false also if the file does not exist.
bool is_sidecar(const std::string& path);

/// The sidecar of a dataset. Nothing if there is none, or if PREFIX.json is some other JSON: a corpus may
/// have that name. kData if it is ours but damaged, kNoInput if PREFIX.json is not a file.
std::optional<Sidecar> read_sidecar(const std::string& prefix);

/// PREFIX.json, written except for commit(). Null, with a warning, if a file of that name is not a sidecar:
/// it is left unchanged.
std::unique_ptr<AtomicFile> make_sidecar(const std::string& prefix, const Sidecar& sidecar);

/// Removes PREFIX.json if it is a sidecar: it would describe a dataset that is being replaced.
void remove_sidecar(const std::string& prefix);

}  // namespace megalith
