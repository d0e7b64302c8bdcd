#include "libcore/data/dataset_tool.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/data/content.h"
#include "libcore/data/sidecar.h"

namespace megalith {
namespace {

void verify_content(const std::string& path, const std::vector<ContentPart>& parts) {
  const ReadableFile file(path);
  ContentChecker checker(path, parts, file.size());
  Progress progress("verifying " + path, static_cast<int64_t>(file.size()), "B");
  int64_t done = 0;
  file.stream([&](std::span<const std::byte> block) {
    checker.update(block.data(), block.size());
    progress.advance_to(done += static_cast<int64_t>(block.size()));
  });
}

Json lengths_summary(std::vector<int64_t> lengths) {
  Json summary = Json::object();
  if (lengths.empty()) return summary;
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  const auto [least, greatest] = std::minmax_element(lengths.begin(), lengths.end());
  const auto sum = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  summary.set("min", *least);
  summary.set("median", *middle);
  summary.set("mean", static_cast<double>(sum) / static_cast<double>(lengths.size()));
  summary.set("max", *greatest);
  return summary;
}

/// How often each id below 2^24 occurs; those outside are counted together.
struct IdCounts {
  std::vector<int64_t> of_id;
  int64_t outside = 0;
};

IdCounts count_ids(const IndexedDataset& data) {
  constexpr int64_t kMost = int64_t{1} << 24;
  IdCounts counts;
  const TokenSpan ids = data.all_tokens();
  Progress progress("counting", ids.size(), "tokens");
  for (int64_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids[i];
    if (id < 0 || id >= kMost) {
      ++counts.outside;
      continue;
    }
    if (static_cast<size_t>(id) >= counts.of_id.size()) counts.of_id.resize(static_cast<size_t>(id) + 1, 0);
    ++counts.of_id[static_cast<size_t>(id)];
    if (i % (1 << 20) == 0) progress.advance_to(i);
  }
  return counts;
}

Json most_frequent(const IdCounts& counts, size_t n) {
  std::vector<int64_t> ids;
  for (size_t id = 0; id < counts.of_id.size(); ++id)
    if (counts.of_id[id] > 0) ids.push_back(static_cast<int64_t>(id));
  const auto count = [&](int64_t id) { return counts.of_id[static_cast<size_t>(id)]; };
  std::stable_sort(ids.begin(), ids.end(), [&](int64_t a, int64_t b) { return count(a) > count(b); });
  Json rows = Json::array();
  for (size_t i = 0; i < std::min(n, ids.size()); ++i) {
    Json row = Json::object();
    row.set("id", ids[i]);
    row.set("count", count(ids[i]));
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Tokens of a document, all its sequences.
std::vector<int32_t> document_ids(const IndexedDataset& data, int64_t document) {
  std::vector<int32_t> ids;
  for (int64_t s = data.document_begin(document); s < data.document_begin(document + 1); ++s) {
    const size_t before = ids.size();
    ids.resize(before + static_cast<size_t>(data.sequence_length(s)));
    data.sequence(s).copy_to(ids.data() + before);
  }
  return ids;
}

}  // namespace

Json describe_dataset(const std::string& prefix) {
  const IndexedDataset data(prefix);
  Json json = Json::object();
  json.set("prefix", prefix);
  json.set("type", name_of(data.dtype()));
  json.set("documents", data.documents());
  json.set("sequences", data.sequences());
  json.set("tokens", data.tokens());
  json.set("longest_sequence", data.longest_sequence());
  json.set("bin_bytes", static_cast<int64_t>(data.bin().size()));
  json.set("idx_bytes", static_cast<int64_t>(data.idx().size()));
  json.set("sidecar", read_sidecar(prefix) ? Json::load(sidecar_path(prefix)) : Json());
  return json;
}

Verified verify_dataset(const std::string& prefix) {
  const IndexedDataset data(prefix);
  const auto sidecar = read_sidecar(prefix);
  if (!sidecar || sidecar->idx_hash.empty()) return Verified::kStructure;
  verify_content(data.idx().path(), {{data.idx().size(), sidecar->idx_hash}});
  verify_content(data.bin().path(), sidecar->bin_parts);
  return Verified::kContent;
}

void print_documents(const IndexedDataset& data, int64_t from, int64_t count, const Tokenizer* tokenizer,
                     std::ostream& out) {
  for (int64_t i = from; i < data.documents() && i - from < count; ++i) {
    const std::vector<int32_t> ids = document_ids(data, i);
    Json line = Json::object();
    line.set("document", i);
    if (tokenizer)
      line.set("text", tokenizer->decode(ids));
    else
      line.set("ids", Json::Array(ids.begin(), ids.end()));
    out << line.dump() << '\n';
  }
}

Json dataset_statistics(const IndexedDataset& data, size_t frequent) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < data.documents(); ++i) {
    int64_t tokens = 0;
    for (int64_t s = data.document_begin(i); s < data.document_begin(i + 1); ++s)
      tokens += data.sequence_length(s);
    lengths.push_back(tokens);
  }
  const IdCounts counts = count_ids(data);
  Json json = Json::object();
  json.set("prefix", data.prefix());
  json.set("documents", data.documents());
  json.set("empty_documents", static_cast<int64_t>(std::count(lengths.begin(), lengths.end(), 0)));
  json.set("tokens", data.tokens());
  json.set("tokens_per_document", lengths_summary(std::move(lengths)));
  json.set("different_ids", static_cast<int64_t>(std::count_if(counts.of_id.begin(), counts.of_id.end(),
                                                               [](int64_t n) { return n > 0; })));
  json.set("ids_outside_2^24", counts.outside);
  json.set("most_frequent", most_frequent(counts, frequent));
  return json;
}

}  // namespace megalith
