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

/// What PREFIX.json beside a dataset tells about it. It is a file of its own because .bin and .idx must stay
/// as Megatron writes them, and have no room for it. A dataset without one is complete.
/// docs/formats/indexed.md has the members.
struct Sidecar {
  std::string tokenizer = {};  // its type, as --tokenizer-type names it
  // The hash of its vocabulary and rules, so equal hashes encode alike. Empty: not known.
  std::string tokenizer_hash = {};
  int64_t vocab_size = 0;  // unpadded
  int64_t documents = 0, sequences = 0, tokens = 0;
  int64_t max_token_id = -1;  // -1: no token at all
  // XXH64 of the .idx, 16 hexadecimal digits, and of the .bin in the runs in which it was written: one for a
  // preprocessed dataset; for a joined one those of its sources, in order, so that a merge need not hash
  // their bytes again. idx_hash empty: both are not known.
  std::string idx_hash = {};
  std::vector<ContentPart> bin_parts = {};
  Json options = Json::object();  // how it was made; for people

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
/// Whether `path` is a JSON file that make_sidecar() made; false also where there is no such file.
bool is_sidecar(const std::string& path);

/// The sidecar of a dataset. Nothing when there is none, or when PREFIX.json is some other JSON, because a
/// corpus may have that name. kData when it is ours but damaged, kNoInput when what has its name is no file.
std::optional<Sidecar> read_sidecar(const std::string& prefix);

/// PREFIX.json, written but for commit(). Null, with a warning, where a file of that name is no sidecar: it
/// is left as it is.
std::unique_ptr<AtomicFile> make_sidecar(const std::string& prefix, const Sidecar& sidecar);

/// Removes PREFIX.json if it is a sidecar: it would describe a dataset that is being replaced.
void remove_sidecar(const std::string& prefix);

}  // namespace megalith
