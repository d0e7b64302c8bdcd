#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/checkpoint/views/joined_file.h"
#include "libcore/convert/sources/megatron_source.h"

/// Code that the readers of both forms of Megatron checkpoints share: one file per rank, and distributed.
namespace megalith {

inline constexpr const char* kEmbeddingName = "embedding.word_embeddings.weight";
inline constexpr const char* kPositionsName = "embedding.position_embeddings.weight";
inline constexpr const char* kHeadName = "output_layer.weight";

/// The parts from which a parameter is joined, and second copies of some of them.
struct FoundParts {
  std::vector<JoinedPart> parts = {}, copies = {};
};
using PartsByName = std::map<std::string, FoundParts>;  // by our name

/// What a checkpoint holds in addition to the parameters.
struct MegatronState {
  Json args = Json::object();
  std::optional<double> version = {};  // checkpoint_version
  int64_t iteration = kRelease;
  Json scheduler = {};  // opt_param_scheduler; null if there is none
};
/// Throws kData for an iteration or a version that is not a number.
MegatronState megatron_state(const TorchFile& file);

/// Sets the vocabulary's size and calls config.finish(). Throws kData if the options contradict each other.
void complete_config(ModelConfig& config, int64_t vocabulary, const std::string& where);

/// The order of the rows in the parts of a packed QKV. Throws kData if the checkpoint's version is unknown or
/// does not fit.
RowOrder qkv_row_order(const MegatronState& state, const ModelConfig& config, bool mcore,
                       const std::string& where);
/// Sets the row order of a part. Throws kData unless the part holds whole groups.
void set_row_order(JoinedPart& part, RowOrder order, const ModelConfig& config);

/// join_parts() joins all parameters of the configuration from their parts and puts `prefix` before their
/// names. Throws kData, with a list, if parameters are missing or do not belong to the model.
struct PartsOf {
  const ModelConfig& config;
  bool norms_less_one;  // norm weights are stored minus one
  const std::string& where;
};
std::vector<JoinedTensor> join_parts(PartsByName found, const PartsOf& model, const std::string& prefix = {});

/// Lists some of the names for an error message: `"a", "b", …`.
std::string some_of(const std::set<std::string>& names);

/// open_megatron_ranks() opens a checkpoint of one file per rank, open_megatron_dist() a distributed one.
MegatronModel open_megatron_ranks(const std::string& path, const SourceOptions& options);
MegatronModel open_megatron_dist(const std::string& folder, const SourceOptions& options);
bool is_megatron_rank_folder(const std::string& path);  // its name begins with mp_rank_

}  // namespace megalith
