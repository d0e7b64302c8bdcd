#include "libcore/data/samples/split_plan.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/data/samples/dataset_builder.h"
#include "libcore/io/cache/build_cache.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::TempDir;

void write_dataset(const std::string& prefix, int documents, int32_t length) {
  IndexedDatasetWriter writer(prefix, IndexedDType::kU16);
  const std::vector<int32_t> ids(static_cast<size_t>(length), 1);
  for (int i = 0; i < documents; ++i) writer.add_document(ids, std::array<int32_t, 1>{length});
  writer.finish();
}

/// Bytes of the arrays that were built.
size_t bytes_of(const GptDataset& data) {
  const auto bytes = [](const auto& v) { return v.span().size_bytes(); };
  return bytes(data.index().documents) + std::visit(bytes, data.index().samples) +
         std::visit(bytes, data.index().shuffle);
}
size_t bytes_of(const BlendedDataset& blend) {
  size_t sum = blend.index().dataset.span().size_bytes() + blend.index().sample.span().size_bytes();
  for (const GptDataset& data : blend.datasets()) sum += bytes_of(data);
  return sum;
}

TEST(SplitPlan, KnowsTheSizeOfWhatIsBuilt) {
  const TempDir dir;
  write_dataset(dir / "a", 90, 13);
  write_dataset(dir / "b", 31, 40);
  const std::string a = dir / "a", b = dir / "b";
  const std::vector<std::vector<std::string>> paths = {{a}, {"1", a}, {"0.3", a, "0.7", b}, {a, b}};
  for (const auto& path : paths)
    for (const std::optional<int64_t> samples : {std::optional<int64_t>(500), std::optional<int64_t>()}) {
      if (!samples && parse_double(path[0])) continue;  // weights need a number
      const OpenBlend open = open_blend(path);
      const DatasetRequest request{.split = "8,1,1", .seq_length = 16, .samples = {samples, 20, 3}};
      const auto plans = plan_splits(open, request);
      const TrainingDatasets built = build_datasets(open, request);
      for (size_t i = 0; i < built.size(); ++i) {
        ASSERT_TRUE(plans[i] && built[i]);
        EXPECT_EQ(plans[i]->size, built[i]->size());
        EXPECT_EQ(plans[i]->index_bytes(open),
                  std::visit([](const auto& source) { return bytes_of(source); }, built[i]->source()));
      }
    }
}

std::string refusal(const IndexMemory& memory, size_t left, size_t model = 0) {
  try {
    require_index_memory(memory, left, model);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// What is held of an order that takes `all` in memory, if its files are in the folder.
size_t held_in(const std::string& folder, const IndexMemory& all) {
  return keeping_in(folder) == Keeping::kInMemory ? all.held : 0;
}

TEST(IndexMemory, CountsWhatTheFolderDoesNotTake) {
  namespace fs = std::filesystem;
  const TempDir dir;
  write_dataset(dir / "a", 90, 13);
  write_dataset(dir / "b", 31, 40);
  const std::vector<std::vector<std::string>> paths = {{"0.3", dir / "a", "0.7", dir / "b"},
                                                       {dir / "a", dir / "b"}};
  for (const auto& path : paths) {
    const OpenBlend open = open_blend(path);
    DatasetRequest request{.split = "1,0,0", .seq_length = 16};
    if (parse_double(path[0])) request.samples[0] = 500;
    const SplitPlan plan = *plan_splits(open, request)[0];
    const IndexMemory all = index_memory(open, plan, "");
    EXPECT_EQ(all.held, plan.index_bytes(open));
    fs::create_directory(dir / "open");
    fs::permissions(dir / "open", fs::perms::all);
    EXPECT_EQ(index_memory(open, plan, dir / "open").held, all.held);  // each rank builds its own there
    request.index_folder = dir / "kept";
    EXPECT_EQ(index_memory(open, plan, request.index_folder).held, held_in(dir.path(), all));
    EXPECT_GT(index_memory(open, plan, request.index_folder).building, 0u);
    build_datasets(open, request);
    EXPECT_EQ(index_memory(open, plan, request.index_folder).held, 0u);
    EXPECT_EQ(index_memory(open, plan, request.index_folder).building, 0u);
  }
}

TEST(IndexMemory, IsRefusedWithTheOptionThatHelps) {
  const TempDir dir;
  write_dataset(dir / "a", 90, 13);
  const OpenBlend open = open_blend({dir / "a"});
  const auto plans = plan_splits(open, {.split = "1,0,0", .seq_length = 16, .samples = {500}});
  const IndexMemory held = index_memory(open, *plans[0], ""),
                    kept = index_memory(open, *plans[0], dir / "folder");
  // 7 epochs of 90 x 13 tokens hold 511 pieces of 16: 7 x 90 documents, 512 pairs, 511 places
  EXPECT_EQ(held.held, 4u * 7 * 90 + 8 * 512 + 4 * 511);
  EXPECT_EQ(held.building, 0u);
  EXPECT_EQ(kept.held, held_in(dir.path(), held));
  EXPECT_EQ(kept.building, 4u * 7 * 90);
  EXPECT_EQ(refusal(held, held.held), "");
  EXPECT_NE(refusal(held, held.held - 1).find("give --data-cache-path DIR"), std::string::npos);
  EXPECT_NE(refusal(kept, 10).find("--train-samples"), std::string::npos);
  EXPECT_EQ(refusal(held, held.held + 1000, 1000), "");
  EXPECT_NE(refusal(held, held.held + 999, 1000).find("the model 1000 B, this machine has"),
            std::string::npos);
  EXPECT_EQ(refusal({.held = 10, .building = 7}, 17, 7), "") << "the model comes after the build";
  EXPECT_EQ((held + kept).held, held.held);
  EXPECT_EQ((kept + kept).building, kept.building);
}

/// Lets the process open few files at a time while the object exists.
class FewFiles {
 public:
  explicit FewFiles(rlim_t files) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{files, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;

 private:
  rlimit before_{};
};

int64_t mappings() {
  std::ifstream maps("/proc/self/maps");
  int64_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

// Linux allows a process 65,530 mappings (vm.max_map_count).
TEST(OpenBlend, OpensThousandsOfDatasets) {
  constexpr int kDatasets = 10000;
  const TempDir dir;
  write_dataset(dir / "0", 20, 5);
  std::vector<std::string> path = {dir / "0"};
  for (int i = 1; i < kDatasets; ++i) {
    path.push_back(dir / std::to_string(i));
    for (const char* end : {".bin", ".idx"})
      std::filesystem::create_hard_link(dir / "0" + std::string(end), path.back() + end);
  }
  const FewFiles few(64);
  const int64_t before = mappings();
  OpenBlend open = open_blend(path);
  EXPECT_EQ(open.datasets.size(), static_cast<size_t>(kDatasets));
  EXPECT_LE(mappings() - before, 2 * kDatasets);
  const TrainingDatasets data = build_datasets(open, {.split = "1,0,0", .seq_length = 16});
  EXPECT_EQ(data[0]->size(), int64_t{kDatasets} * 6);  // (20 x 5 - 1) / 16 each
  EXPECT_LT(mappings(), 65530);
}

TEST(OpenBlend, TakesPatternsOfNames) {
  const TempDir dir;
  for (const char* name : {"b", "a", "c1", "x[1]"}) write_dataset(dir / name, 3, 5);
  const auto prefixes = [](const std::vector<std::string>& words) {
    return open_blend(words).blend.prefixes;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(prefixes({dir / "[ab]"}), (Words{dir / "a", dir / "b"}));
  EXPECT_EQ(prefixes({dir / "c*", dir / "?"}), (Words{dir / "c1", dir / "a", dir / "b"}));
  EXPECT_EQ(prefixes({dir / "x[1]"}), (Words{dir / "x[1]"}));  // a dataset of that name
  EXPECT_EQ(prefixes({"2", dir / "c*", "1", dir / "b"}), (Words{dir / "c1", dir / "b"}));
  EXPECT_THROW(prefixes({"2", dir / "?", "1", dir / "b"}), Error);
  EXPECT_THROW(prefixes({dir / "z*"}), Error);
}

TEST(OpenBlend, MapsADatasetThatIsNamedTwiceOnce) {
  const TempDir dir;
  write_dataset(dir / "a", 3, 5);
  const OpenBlend open = open_blend({"1", dir / "a", "2", dir / "a"});
  EXPECT_EQ(open.datasets[0].bin().data(), open.datasets[1].bin().data());
}

}  // namespace
}  // namespace megalith
