#include "libcore/data/cache/cache_names.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/data/cache/python_text.h"
#include "libcore/hash/md5.h"

namespace megalith {
namespace {

/// The bounds of the splits as shares of a dataset, as convert_split_vector_to_split_matrix gives them: the
/// first bound is an integer there.
Json split_matrix(const std::string& split) {
  if (split.empty()) return {};
  Json matrix = Json::array();
  bool first = true;
  for (const auto& bounds : split_bounds(split)) {
    if (bounds) {
      Json pair = Json::array();
      pair.push_back(first ? Json(0) : Json(bounds->begin));
      pair.push_back(bounds->end);
      matrix.push_back(std::move(pair));
    } else {
      matrix.push_back({});
    }
    first = false;
  }
  return matrix;
}

CacheName named(const Json& identifiers, const char* of, const char* split) {
  CacheName name;
  append_python_json(name.description, identifiers);
  name.base = concat(md5_hex(name.description), '-', of, '-', split, '-');
  return name;
}

}  // namespace

CacheNames::CacheNames(const std::vector<std::string>& prefixes, const CacheTerms& terms,
                       const SplitPlan& plan)
    : prefixes_(prefixes), terms_(terms), plan_(plan) {}

Json CacheNames::identifiers(size_t number) const {
  const GptSpec& spec = plan_.specs[number];
  Json json = Json::object();
  json.set("class", terms_.dataset_class);
  json.set("dataset_path", prefixes_[plan_.datasets[number]]);
  json.set("num_samples", spec.samples ? Json(*spec.samples) : Json());
  json.set("index_split", spec.name);
  json.set("random_seed", terms_.seed);
  json.set("sequence_length", terms_.seq_length);
  json.set("split", terms_.split.empty() ? Json() : Json(terms_.split));
  json.set("split_matrix", split_matrix(terms_.split));
  json.set("tokenizer", terms_.tokenizer);
  return json;
}

CacheName CacheNames::dataset(size_t number) const {
  return named(identifiers(number), terms_.dataset_class, kSplitNames[plan_.split]);
}

CacheName CacheNames::blend() const {
  const bool exhaustive = plan_.mix == SplitPlan::Mix::kExhaustive;
  Json datasets = Json::array(), weights = Json::array();
  for (size_t i = 0; i < plan_.datasets.size(); ++i) {
    datasets.push_back(identifiers(i));
    weights.push_back(exhaustive ? Json(plan_.sizes[i]) : Json(plan_.shares[i]));
  }
  Json json = Json::object();
  json.set("class", "BlendedDataset");
  json.set("datasets", std::move(datasets));
  json.set("split", kSplitNames[plan_.split]);
  json.set("weights", std::move(weights));
  json.set("size", exhaustive ? Json() : Json(plan_.size));
  return named(json, "BlendedDataset", kSplitNames[plan_.split]);
}

}  // namespace megalith
