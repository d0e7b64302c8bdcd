#include "libcore/parallel/devices/wait_report.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

std::string name_of(int rank) {
  return concat("rank ", rank);
}

/// What a rank reports of the groups of a run of four: it is in one of two tensor groups, and in the world.
WaitReport report(int rank, const std::string& tensor_call, uint64_t tensor_number, uint64_t world_number) {
  const int first = rank / 2 * 2;
  return {{{"tensor", {first, first + 1}, tensor_number, tensor_call},
           {"world", {0, 1, 2, 3}, world_number, world_number == 0 ? "" : "all_reduce of 8 f64 (sum)"}}};
}

TEST(DifferingCall, IsTheOneThatMostOfItsGroupDoNotMake) {
  const std::string sum = "all_reduce of 8 fp32 (sum)";
  const std::vector<WaitReport> reports = {report(0, sum, 17, 0), report(1, sum, 17, 0), report(2, "", 0, 5),
                                           report(3, "", 0, 5)};
  EXPECT_EQ(differing_call(reports, name_of),
            "world: rank 2 waits in all_reduce of 8 f64 (sum), call 5, rank 0 in no call of it; all ranks of "
            "a group have to make the same calls");
}

TEST(DifferingCall, ComparesTheMembersOfAGroupAlone) {
  const std::vector<WaitReport> reports = {
      report(0, "all_gather of 4 fp32", 3, 0), report(1, "all_gather of 4 fp32", 3, 0),
      report(2, "all_gather of 8 fp32", 4, 0), report(3, "all_gather of 9 fp32", 4, 0)};
  EXPECT_EQ(differing_call(reports, name_of),
            "tensor: rank 3 waits in all_gather of 9 fp32, call 4, rank 2 in all_gather of 8 fp32, call 4; "
            "all ranks of a group have to make the same calls");
}

TEST(DifferingCall, IsNoneWhereAllWaitAlike) {
  const std::vector<WaitReport> reports = {report(0, "", 0, 2), report(1, "", 0, 2), report(2, "", 0, 2),
                                           report(3, "", 0, 2)};
  EXPECT_EQ(differing_call(reports, name_of), "");
}

}  // namespace
}  // namespace megalith
