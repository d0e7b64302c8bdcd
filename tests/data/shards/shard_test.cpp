#include "libcore/data/shards/shard.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "tests/support/environment.h"

namespace megalith {
namespace {

TEST(Shard, HasASuffixThatSortsByItsNumber) {
  EXPECT_EQ((Shard{3, 20}.suffix()), "-00003-of-00020");
  EXPECT_EQ((Shard{123456, 200000}.suffix()), "-123456-of-200000");
}

TEST(ParseShards, ReadsOneOrSeveral) {
  const auto one = parse_shards("3/20"), several = parse_shards("5-9/5000"), all = parse_shards("0-0/1");
  ASSERT_TRUE(one && several && all);
  EXPECT_EQ(one->first, 3);
  EXPECT_EQ(one->last, 3);
  EXPECT_EQ(one->count, 20);
  EXPECT_EQ(several->first, 5);
  EXPECT_EQ(several->last, 9);
  EXPECT_EQ(several->count, 5000);
}

TEST(ParseShards, RefusesWhatNamesNone) {
  for (const char* text : {"", "3", "/", "3/", "/20", "20/20", "-1/20", "9-5/20", "5-20/20", "a/20", "3/b",
                           "1-2-3/9", "0/0", "0/1000001", " 1/2", "1/2/3", "auto"})
    EXPECT_FALSE(parse_shards(text)) << text;
}

TEST(EngineIndex, IsTheFirstThatIsSet) {
  const test::Variable a("MEGALITH_SHARD", {}), b("SLURM_ARRAY_TASK_ID", {}), c("SLURM_PROCID", "4"),
      d("JOB_COMPLETION_INDEX", {}), e("SLURM_STEP_ID", {});
  EXPECT_FALSE(engine_index()) << "SLURM_PROCID of a batch script";
  {
    const test::Variable step("SLURM_STEP_ID", "0");
    ASSERT_TRUE(engine_index());
    EXPECT_EQ(engine_index()->index, 4);
    EXPECT_EQ(engine_index()->variable, "SLURM_PROCID");
    const test::Variable task("SLURM_ARRAY_TASK_ID", "7");
    EXPECT_EQ(engine_index()->index, 7);
    const test::Variable own("MEGALITH_SHARD", "0");
    EXPECT_EQ(engine_index()->variable, "MEGALITH_SHARD");
  }
  const test::Variable pod("JOB_COMPLETION_INDEX", "2");
  EXPECT_EQ(engine_index()->index, 2);
  const test::Variable wrong("MEGALITH_SHARD", "two");
  EXPECT_THROW((void)engine_index(), Error);
}

TEST(RangesText, IsAnArrayOfSlurm) {
  EXPECT_EQ(ranges_text({}), "");
  EXPECT_EQ(ranges_text({4}), "4");
  EXPECT_EQ(ranges_text({1, 2, 5, 6, 7, 8, 9, 10, 99}), "1-2,5-10,99");
}

}  // namespace
}  // namespace megalith
