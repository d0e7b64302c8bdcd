// A signal ends the build of an order of samples, wherever it comes.
#include <array>
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/data/samples/blended_dataset.h"
#include "libcore/data/samples/gpt_index_file.h"
#include "libcore/io/cache/build_cache.h"
#include "libcore/io/streams/stop_signal.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::TempDir;

IndexedDataset small_dataset(const std::string& prefix) {
  IndexedDatasetWriter writer(prefix, IndexedDType::kU16);
  for (int i = 0; i < 9; ++i)
    writer.add_document(std::array<int32_t, 5>{1, 2, 3, 4, 5}, std::array<int32_t, 1>{5});
  writer.finish();
  return IndexedDataset(prefix);
}

TEST(Stops, EndEachPartOfAnOrder) {
  const TempDir dir;
  const IndexedDataset data = small_dataset(dir / "c");
  const GptSpec spec{.range = {0, 9}, .samples = 40, .seq_length = 4};
  GptIndexMaker maker(data, spec);
  std::vector<int32_t> documents(static_cast<size_t>(maker.plan().documents));
  std::vector<int32_t> samples(2 * static_cast<size_t>(maker.plan().pieces + 1));
  std::vector<uint32_t> shuffle(static_cast<size_t>(maker.plan().pieces));
  const StopSignal stop;
  maker.documents(documents);
  std::raise(SIGTERM);
  EXPECT_THROW(maker.documents(documents), Stopped);
  EXPECT_THROW(maker.samples(documents, std::span(samples)), Stopped);
  EXPECT_THROW(maker.shuffle(std::span(shuffle)), Stopped);
  EXPECT_THROW(build_gpt_index(data, spec), Stopped);
  EXPECT_THROW(blend_by_weights(std::vector{0.5, 0.5}, 100), Stopped);
  EXPECT_THROW(IndexedDataset(dir / "c"), Stopped);
}

TEST(Stops, EndWritingAndReadingAnOrder) {
  const TempDir dir;
  const IndexedDataset data = small_dataset(dir / "c");
  const GptSpec spec{.range = {0, 9}, .samples = 40, .seq_length = 4};
  const std::string folder = dir / "kept";
  kept_gpt_index(data, spec, folder);
  ASSERT_TRUE(has_kept_gpt_index(data, spec, folder));
  const CachedFile file(dir / "other", "kind", 1, std::string(64, 'a'));
  file.store("contents");
  const StopSignal stop;
  std::raise(SIGINT);
  EXPECT_THROW(kept_gpt_index(data, spec, folder), Stopped) << "its hash is being computed";
  EXPECT_THROW(kept_gpt_index(data, spec, dir / "anew"), Stopped);
  EXPECT_FALSE(has_kept_gpt_index(data, spec, dir / "anew")) << "half an order must not look like one";
  EXPECT_THROW(file.load(), Stopped);
}

}  // namespace
}  // namespace megalith
