// Whether the systems that jobs are for know their fields. Needs Python with kubernetes-validate and DLC's
// SDK.
#include <cstdlib>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::app;
using test::CommandResult;
using test::run_command;

constexpr const char* kModel =
    " --global-batch-size 64 --num-layers 8 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
    "--vocab-size 32000 ";

TEST(AutoplanJobs, HaveTheFieldsOfKubernetesAndDlc) {
  if (std::getenv("MEGALITH_PYTHON") == nullptr) GTEST_SKIP() << "MEGALITH_PYTHON names no Python";
  if (!test::python_has("kubernetes_validate alibabacloud_pai_dlc20201203"))
    GTEST_SKIP() << test::python() << " has no kubernetes-validate and DLC's SDK; see tools/setup --peers";
  const test::TempDir folder;
  std::string jobs;
  int count = 0;
  for (const std::string kind : {"k8s", "dlc"})
    for (const std::string on :
         {"--gpu h100 --world-size 1", "--gpu h100 --world-size 16", "--gpu mi300x --world-size 8",
          "--gpu 910b --world-size 16", "--gpu local --world-size 2 --device-memory-gb 8"}) {
      const CommandResult job = run_command(app("autoplan") + kModel + on + " --emit " + kind);
      ASSERT_EQ(job.code, 0) << on << job.err;
      const std::string path = folder / concat(count++, ".json");
      write_file(path, job.out);
      jobs += ' ' + path;
    }
  const CommandResult checked =
      run_command(test::python() + ' ' + MEGALITH_SOURCE_DIR + "/tools/peers/check_jobs.py" + jobs);
  EXPECT_EQ(checked.code, 0) << checked.all();
  EXPECT_NE(checked.out.find("10 jobs, 0 failed"), std::string::npos) << checked.all();
}

}  // namespace
}  // namespace megalith
