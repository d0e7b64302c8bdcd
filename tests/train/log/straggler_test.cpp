#include "libcore/train/log/straggler.h"

#include <gtest/gtest.h>

#include "libcore/parallel/threads/thread_comm.h"

namespace megalith {
namespace {

TEST(Straggler, NamesTheFastestAndTheSlowestRank) {
  EXPECT_EQ(
      straggler_text({12, 15.24, 10.06, 11, 12.5}),
      " > stages took 10.1 ms a step on rank 2, 12.0 at the median, 15.2 on rank 1 (1.27 of the median)");
  EXPECT_EQ(straggler_text({3}),
            " > stages took 3.0 ms a step on rank 0, 3.0 at the median, 3.0 on rank 0 "
            "(1.00 of the median)");
  EXPECT_EQ(straggler_text({10, 30}),
            " > stages took 10.0 ms a step on rank 0, 20.0 at the median, 30.0 on rank 1 "
            "(1.50 of the median)");
}

TEST(Straggler, IsTheSameOnAllRanksAndBeginsAnew) {
  run_thread_ranks(3, {}, [&](Communicator& world) {
    StragglerReport report;
    for (int step = 0; step < 4; ++step) report.add(0.001 * (world.rank() + 1));
    EXPECT_EQ(
        report.text(world),
        " > stages took 1.0 ms a step on rank 0, 2.0 at the median, 3.0 on rank 2 (1.50 of the median)");
    report.add(0.002);
    EXPECT_NE(report.text(world).find(" 2.0 at the median"), std::string::npos);
  });
}

}  // namespace
}  // namespace megalith
