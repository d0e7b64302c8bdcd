#include "libcore/data/merge.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/data/indexed_dataset.h"
#include "libcore/data/sidecar.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// Regular files of a folder, relative to it.
std::vector<fs::path> files_of(const fs::path& folder, bool recursive) {
  std::vector<fs::path> files;
  std::error_code reason;
  const auto add = [&](const fs::directory_entry& entry) {
    if (entry.is_regular_file()) files.push_back(entry.path().lexically_relative(folder));
  };
  if (recursive)
    for (const auto& entry : fs::recursive_directory_iterator(folder, reason)) add(entry);
  else
    for (const auto& entry : fs::directory_iterator(folder, reason)) add(entry);
  if (reason) fail(ErrorKind::kIo, folder.string(), ": cannot read the folder: ", reason.message());
  return files;
}

/// The sources in order. One that is a folder stands for the datasets in it.
std::vector<std::string> sources_of(const MergeConfig& config) {
  std::vector<std::string> prefixes;
  for (const std::string& input : config.inputs) {
    if (!fs::is_directory(input)) {
      prefixes.push_back(input);
      continue;
    }
    const std::vector<std::string> found = find_datasets(input, config.recursive);
    prefixes.insert(prefixes.end(), found.begin(), found.end());
  }
  return prefixes;
}

/// Sidecars of the sources become one, as long as every source has one.
class JoinedSidecar {
 public:
  void add(const IndexedDataset& data) {
    auto next = read_sidecar(data.prefix());
    if (!next || (!first_.empty() && !sidecar_)) {
      sidecar_.reset();
    } else if (first_.empty()) {
      sidecar_ = std::move(next);
    } else {
      check_same_tokenizer(data.prefix(), *next);
      sidecar_->max_token_id = std::max(sidecar_->max_token_id, next->max_token_id);
      if (!(sidecar_->options == next->options)) sidecar_->options = Json::object();
    }
    if (first_.empty()) first_ = data.prefix();
  }

  void write(const std::string& prefix, const IndexedDatasetWriter& writer) {
    if (!sidecar_) return;
    writer.describe(*sidecar_);
    write_sidecar(prefix, *sidecar_);
  }

 private:
  void check_same_tokenizer(const std::string& prefix, const Sidecar& next) const {
    const bool hashes_differ = !next.tokenizer_hash.empty() && !sidecar_->tokenizer_hash.empty() &&
                               next.tokenizer_hash != sidecar_->tokenizer_hash;
    if (next.tokenizer == sidecar_->tokenizer && next.vocab_size == sidecar_->vocab_size && !hashes_differ)
      return;
    fail(ErrorKind::kData, sidecar_path(prefix), ": made with ", next.tokenizer, " of ", next.vocab_size,
         " ids (", next.tokenizer_hash, "), ", sidecar_path(first_), " with ", sidecar_->tokenizer, " of ",
         sidecar_->vocab_size, " ids (", sidecar_->tokenizer_hash,
         "); preprocess both with the same tokenizer");
  }

  std::string first_;
  std::optional<Sidecar> sidecar_;
};

void check_output(const MergeConfig& config, const std::vector<std::string>& prefixes) {
  const fs::path output = fs::weakly_canonical(config.output_prefix + ".bin");
  for (const std::string& prefix : prefixes)
    if (fs::weakly_canonical(prefix + ".bin") == output)
      fail(ErrorKind::kUsage, "--output-prefix ", quote(config.output_prefix), " is one of the inputs (",
           quote(prefix), "); write to another folder, or move it away first");
}

}  // namespace

void MergeConfig::validate(Problems& problems) const {
  if (multimodal) problems.add("--multimodal: datasets with sequence modes are not supported");
}

std::vector<std::string> find_datasets(const std::string& folder, bool recursive) {
  std::set<std::string> prefixes;  // ordered by unsigned bytes, which for UTF-8 is the order of code points
  for (const fs::path& file : files_of(folder, recursive)) {
    const std::string ending = file.extension().string(), path = (folder / file).string();
    const std::string prefix = path.substr(0, path.size() - ending.size());
    const bool bin = file_exists(prefix + ".bin"), idx = file_exists(prefix + ".idx");
    if (ending == ".json" && bin && idx) continue;
    if (ending != ".bin" && ending != ".idx")
      fail(ErrorKind::kData, path,
           ": is no part of a dataset; wanted only .bin/.idx pairs (and their .json) in ", quote(folder),
           ": move it away");
    if (!bin || !idx)
      fail(ErrorKind::kData, path, ": there is no ", prefix, bin ? ".idx" : ".bin",
           " beside it; run preprocess again, or move the file away");
    prefixes.insert(prefix);
  }
  if (prefixes.empty())
    fail(ErrorKind::kNoInput, folder, ": holds no .bin/.idx pair",
         recursive ? "" : "; for datasets in folders below it give --recursive");
  return {prefixes.begin(), prefixes.end()};
}

MergeSummary merge_datasets(const MergeConfig& config) {
  const std::vector<std::string> prefixes = sources_of(config);
  check_output(config, prefixes);
  std::optional<IndexedDatasetWriter> writer;
  JoinedSidecar sidecar;
  Progress progress("merging", static_cast<int64_t>(prefixes.size()), "datasets");
  MergeSummary summary;
  for (const std::string& prefix : prefixes) {
    const IndexedDataset data(prefix);
    if (!writer) writer.emplace(config.output_prefix, data.dtype());
    writer->append(data);
    sidecar.add(data);
    log(" > ", prefix, ": ", format_count(data.documents()), " documents, ", format_count(data.tokens()),
        " tokens");
    progress.advance_to(++summary.datasets);
  }
  writer->finish();
  sidecar.write(config.output_prefix, *writer);
  summary.documents = writer->documents();
  summary.sequences = writer->sequences();
  summary.tokens = writer->tokens();
  log("Merged ", format_count(summary.datasets), " datasets into ", config.output_prefix,
      ".bin and .idx: ", format_count(summary.documents), " documents, ", format_count(summary.tokens),
      " tokens");
  return summary;
}

}  // namespace megalith
