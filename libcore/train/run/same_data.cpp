#include "libcore/train/run/same_data.h"

#include <algorithm>
#include <random>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/data/indexed/index_check.h"
#include "libcore/data/indexed/sidecar.h"
#include "libcore/data/samples/blended_dataset.h"
#include "libcore/data/samples/dataset_builder.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"
#include "libcore/parallel/exchange.h"
#include "libcore/parallel/together.h"

namespace megalith {
namespace {

/// What is known of the data without reading all of it.
struct DataFacts {
  struct Dataset {
    int64_t tokens, sequences, bytes;
    bool operator==(const Dataset&) const = default;
  };
  std::vector<Dataset> datasets = {};
  std::array<int64_t, 3> samples = {};
  std::string texts = {}, tokenizer = {};

  template <class V>
  void members(V&& visit) {
    visit(datasets, samples, texts, tokenizer);
  }
  bool operator==(const DataFacts&) const = default;
};

DataFacts facts_of(const RunData& data) {
  DataFacts facts{.samples = data.samples, .texts = data.texts, .tokenizer = data.tokenizer};
  for (const IndexedDataset* one : data.datasets)
    facts.datasets.push_back({one->tokens(), one->sequences(), static_cast<int64_t>(one->bin().size())});
  return facts;
}

std::string text_of(const DataFacts& facts) {
  std::string text;
  for (const auto& [tokens, sequences, bytes] : facts.datasets)
    text += concat(text.empty() ? "" : " + ", tokens, " tokens in ", sequences, " sequences");
  if (!facts.texts.empty()) text += "texts " + facts.texts;
  for (size_t split = 0; split < facts.samples.size(); ++split)
    if (facts.samples[split] > 0 && facts.texts.empty())
      text += concat(text.empty() ? "" : ", ", facts.samples[split], " samples to ", kSplitNames[split]);
  return text + (facts.tokenizer.empty() ? "" : ", tokenizer " + facts.tokenizer);
}

void require_same_facts(Communicator& world, const RunData& data) {
  const std::vector<DataFacts> all = exchange_values(world, facts_of(data));
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all.front())
      fail(ErrorKind::kData, "the data and the tokenizer's files of rank 0 are ", text_of(all.front()),
           ", those of rank ", rank, " ", text_of(all[rank]), "; give every machine the same files");
}

/// The hashes of a dataset's contents.
struct Contents {
  uint64_t idx = 0;
  std::vector<std::string> stated = {};  // hashes of the .bin's parts in the sidecar; empty: no sidecar
  std::vector<uint64_t> stated_bytes = {};
  std::vector<uint64_t> blocks = {};

  template <class V>
  void members(V&& visit) {
    visit(idx, stated, stated_bytes, blocks);
  }
};

/// The offsets of the sampled blocks of a file, in bytes. A small file is sampled as a whole.
std::vector<uint64_t> sampled_places(uint64_t bytes, uint64_t seed, uint64_t blocks = kSampledBlocks) {
  std::vector<uint64_t> places;
  if (bytes <= blocks * kSampledBlock) {
    for (uint64_t at = 0; at < bytes; at += kSampledBlock) places.push_back(at);
    return places;
  }
  std::mt19937_64 draw(seed);
  for (uint64_t i = 0; i < blocks; ++i) places.push_back(draw() % (bytes - kSampledBlock + 1));
  return places;
}

/// Reads the .bin with read calls instead of mapping it: of a .bin on another machine's disk, mapping would
/// load more than the sampled blocks.
Contents contents_of(const IndexedDataset& data, uint64_t seed) {
  Contents contents{.idx = xxh64(data.idx().text())};
  if (const auto sidecar = read_sidecar(data.prefix()))
    for (const ContentPart& part : sidecar->bin_parts) {
      contents.stated.push_back(part.xxh64);
      contents.stated_bytes.push_back(part.bytes);
    }
  const ReadableFile bin(data.bin().path());
  std::string block;
  for (const uint64_t at : sampled_places(data.bin().size(), seed)) {
    block.resize(std::min(kSampledBlock, data.bin().size() - at));
    bin.read_at(at, block.data(), block.size());
    contents.blocks.push_back(xxh64(block));
  }
  return contents;
}

/// Compares rank 0's contents of a dataset with those of another rank.
class ContentComparison {
 public:
  ContentComparison(const IndexedDataset& data, size_t rank, uint64_t seed)
      : data_(data), rank_(rank), seed_(seed) {}

  void require_same(const Contents& first, const Contents& other) const {
    if (first.idx != other.idx) refuse(".idx has other contents");
    if (first.stated_bytes == other.stated_bytes && first.stated != other.stated)
      refuse(".json, its sidecar, states other contents of the .bin");
    const std::vector<uint64_t> places = sampled_places(data_.bin().size(), seed_);
    for (size_t i = 0; i < places.size(); ++i)
      if (first.blocks.at(i) != other.blocks.at(i))
        refuse(concat(".bin has other contents in the ", kSampledBlock, " bytes from byte ", places[i]));
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    fail(ErrorKind::kData, data_.prefix(), what, " on rank ", rank_,
         " than on rank 0; give every machine the same files");
  }

  const IndexedDataset& data_;
  size_t rank_;
  uint64_t seed_;
};

/// For each rank, the first rank that opens the same file on the same machine.
std::vector<size_t> readers_of(Communicator& world, const std::vector<RankPlace>& places,
                               const IndexedDataset& data) {
  const std::string mine = concat(places[static_cast<size_t>(world.rank())].machine, '\0', data.file_key());
  const std::vector<std::string> all = exchange_values(world, mine);
  std::vector<size_t> readers;
  for (const std::string& key : all)
    readers.push_back(static_cast<size_t>(std::find(all.begin(), all.end(), key) - all.begin()));
  return readers;
}

/// Adds the size of a file and `blocks` blocks of it to a hash.
void add_sample(Xxh64& hash, const std::string& path, uint64_t blocks) {
  const ReadableFile file(path);
  const uint64_t bytes = file.size();
  hash.update(&bytes, sizeof bytes);
  std::string block;
  for (const uint64_t at : sampled_places(bytes, bytes, blocks)) {
    block.resize(std::min(kSampledBlock, bytes - at));
    file.read_at(at, block.data(), block.size());
    hash.update(block.data(), block.size());
  }
}

}  // namespace

Json data_digests(const DataConfig& data) {
  if (data.reads_texts()) return {};
  std::vector<std::string> prefixes;
  for (const auto* paths : {&data.data_path, &data.train_path, &data.valid_path, &data.test_path}) {
    const Blend blend = parse_blend(*paths);
    for (const std::string& prefix : blend.prefixes) {
      if (!file_exists(prefix) && !file_exists(prefix + ".idx")) return {};
      prefixes.push_back(existing_dataset(prefix));
    }
  }
  if (prefixes.empty()) return {};
  constexpr uint64_t kFewest = 4;  // blocks of a file, however many datasets a blend has
  const uint64_t blocks = std::max(kFewest, kSampledBlocks / prefixes.size());
  Json digests = Json::array();
  for (const std::string& prefix : prefixes) {
    Xxh64 hash;
    for (const char* end : {".bin", ".idx"}) add_sample(hash, prefix + end, blocks);
    digests.push_back(hex64(hash.digest()));
  }
  return digests;
}

void require_same_data(Communicator& world, const std::vector<RankPlace>& places,
                       std::chrono::milliseconds peer_timeout, const RunData& data) {
  require_same_facts(world, data);
  const auto seed = rank0_value(world, uint64_t{std::random_device()()});
  for (const IndexedDataset* one : data.datasets) {
    const std::vector<size_t> readers = readers_of(world, places, *one);
    const auto rank = static_cast<size_t>(world.rank());
    Contents mine;
    do_together(world, peer_timeout, [&](const auto&) {
      if (readers[rank] == rank) mine = contents_of(*one, seed);
    });
    const std::vector<Contents> all = exchange_values(world, mine);
    for (size_t other = 1; other < all.size(); ++other)
      ContentComparison(*one, other, seed).require_same(all.front(), all[readers[other]]);
  }
}

}  // namespace megalith
