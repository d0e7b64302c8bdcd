#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// A folder with the files that docs/scale-out.md and the examples name. Commands call the programs by name.
class ScaleOutFolder : public testing::Test {
 protected:
  ScaleOutFolder() {
    fs::copy(test_data("text/goldens/trained"), dir_ / "tokenizer");
    fs::create_directory(dir_ / "corpus");
    for (const char* name : {"a", "b"}) {
      std::string lines;
      for (int i = 0; i < 200; ++i)
        lines += concat("{\"text\": \"Document ", i, name, " of the harbour\"}\n");
      lines += "{\"text\": \"The same in both\"}\n";
      write_file(dir_ / concat("corpus/", name, ".jsonl"), lines);
    }
  }
  CommandResult run(const std::string& command) const {
    return run_command(concat("cd ", dir_.path().string(), " && PATH=", dir_ / "bin", ':',
                              MEGALITH_BINARY_DIR, "/bin:$PATH; ", command));
  }
  /// Makes a program of the folder, which comes before those of the system.
  void write_program(const std::string& name, const std::string& script) const {
    fs::create_directories(dir_ / "bin");
    write_file(dir_ / ("bin/" + name), "#!/bin/sh\n" + script);
    fs::permissions(dir_ / ("bin/" + name), fs::perms::owner_all);
  }
  /// Whether joining the shards of "out/corpus" gives what one process writes.
  void expect_bytes_of_one_process() const {
    const std::string options = " --input corpus --tokenizer-model tokenizer --append-eod";
    const CommandResult one = run("megalith-preprocess --output-prefix one" + options);
    ASSERT_EQ(one.code, 0) << one.all();
    const CommandResult all = run("megalith-merge --shards out/corpus --output-prefix all");
    ASSERT_EQ(all.code, 0) << all.all();
    for (const char* end : {".bin", ".idx"})
      EXPECT_EQ(read_file(dir_ / concat("all_text_document", end)),
                read_file(dir_ / concat("one_text_document", end)));
  }
  static std::string example(const std::string& name) {
    return concat(MEGALITH_SOURCE_DIR, "/examples/", name);
  }

  TempDir dir_;
};

using ScaleOutDocs = ScaleOutFolder;
using ScaleOutExamples = ScaleOutFolder;

TEST_F(ScaleOutDocs, EveryCommandWorks) {
  const std::vector<std::string> commands = doc_commands("scale-out.md");
  EXPECT_EQ(commands.size(), 19U);
  for (const std::string& command : commands) {
    const CommandResult result = run(command);
    EXPECT_EQ(result.code, 0) << command << '\n' << result.all();
    if (command.find("||") != std::string::npos) {
      EXPECT_EQ(result.out, "2\n2 is missing\n");
    }
  }
  const CommandResult counts = run("megalith-data inspect --json all_text_document unique_text_document");
  EXPECT_NE(counts.out.find("\"documents\": 402"), std::string::npos) << counts.out;
  EXPECT_NE(counts.out.find("\"documents\": 401"), std::string::npos) << counts.out;
}

// An engine may start many more shards than there is work for. (WithoutWorkSyncWhatTheyWriteOnce counts its
// syncs, whose time is the disk's.)
TEST_F(ScaleOutDocs, AShardWithoutWorkTakesLittleProcessorTime) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes time of its own";
#endif
  const auto processor_time = [] {
    rusage used{};
    ::getrusage(RUSAGE_CHILDREN, &used);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
  };
  double least = 1;
  for (int i = 1; i <= 10; ++i) {
    const double before = processor_time();
    const CommandResult empty =
        run(concat("megalith-preprocess --input corpus --output-prefix out/empty --tokenizer-model tokenizer "
                   "--append-eod --shard ",
                   i, "/1000000"));
    least = std::min(least, processor_time() - before);
    ASSERT_EQ(empty.code, 0) << empty.all();
    ASSERT_NE(empty.all().find("reading 0 B of 0 files"), std::string::npos) << empty.all();
  }
  EXPECT_LT(least, 0.020) << "seconds, with the shell's";
}

TEST_F(ScaleOutExamples, AreShort) {
  int examples = 0;
  for (const auto& entry : fs::directory_iterator(concat(MEGALITH_SOURCE_DIR, "/examples"))) {
    const std::string text = read_file(entry.path());
    EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 40) << entry.path();
    ++examples;
  }
  EXPECT_GE(examples, 3);
}

// scontrol is one of ours; tools/peers/slurm.sh runs the same script under Slurm.
TEST_F(ScaleOutExamples, OfSlurmPutThemselvesInTheQueueAgain) {
  write_program("scontrol", "echo \"$*\" >> requeued\n");
  const auto job = [&](int task) {
    return run(concat("SLURM_ARRAY_JOB_ID=17 SLURM_ARRAY_TASK_ID=", task, " bash ", example("slurm_array.sh"),
                      " 3 corpus out/corpus tokenizer"));
  };
  EXPECT_EQ(job(0).code, 0);
  EXPECT_EQ(job(1).code, 0);
  EXPECT_EQ(run("megalith-data shards --missing out/corpus").out, "2\n");
  // another process has the shard
  const CommandResult held =
      run(concat("flock out/.corpus-00002-of-00003.lock env SLURM_ARRAY_JOB_ID=17 "
                 "SLURM_ARRAY_TASK_ID=2 bash ",
                 example("slurm_array.sh"), " 3 corpus out/corpus tokenizer"));
  EXPECT_EQ(held.code, 75) << held.all();
  EXPECT_EQ(read_file(dir_ / "requeued"), "requeue 17_2\n");
  const CommandResult wrong = run(concat("SLURM_ARRAY_JOB_ID=17 SLURM_ARRAY_TASK_ID=3 bash ",
                                         example("slurm_array.sh"), " 3 corpus out/corpus tokenizer"));
  EXPECT_EQ(wrong.code, 64) << wrong.all();
  EXPECT_NE(wrong.all().find("an array of Slurm is --array=0-2"), std::string::npos) << wrong.all();
  EXPECT_EQ(read_file(dir_ / "requeued"), "requeue 17_2\n") << "64 is not tried again";
  EXPECT_EQ(job(2).code, 0);
  expect_bytes_of_one_process();
}

TEST_F(ScaleOutExamples, OfKubernetesRunsTheCommandOfTheJob) {
  const CommandResult words =
      run(concat("sed -n '/command: \\[/,/\\]/p' ", example("kubernetes_job.yaml"),
                 " | tr -d '\n' | sed 's/.*\\[//; s/\\].*//; s/, */ /g; s/  */ /g; s|/data/||g'"));
  ASSERT_EQ(words.code, 0);
  const std::string start = "megalith-preprocess --input corpus --output-prefix out/corpus ";
  ASSERT_TRUE(words.out.starts_with(start)) << words.out;
  for (int index = 0; index < 20; ++index) {
    const CommandResult pod = run(concat("JOB_COMPLETION_INDEX=", index, ' ', words.out));
    ASSERT_EQ(pod.code, 0) << pod.all();
  }
  expect_bytes_of_one_process();
}

// The parallel of this test starts one command after another, as GNU's does with one job;
// tools/peers/scale_out.sh runs the same script with that.
TEST_F(ScaleOutExamples, OfParallelContinueWithWhatIsMissing) {
  write_program(
      "parallel",
      "while [ \"$1\" != megalith-preprocess ]; do shift; done\n"
      "while read -r n; do set -- \"$@\"; i=$n; c=; for w in \"$@\"; do c=\"$c '$(echo \"$w\" | sed "
      "\"s/{}/$i/\")'\"; done; eval \"$c\" || exit 1; done\n");
  ASSERT_EQ(run("megalith-preprocess --input corpus --output-prefix out/corpus --tokenizer-model tokenizer "
                "--append-eod --shard 1/3")
                .code,
            0);
  const CommandResult done =
      run(concat("bash ", example("gnu_parallel.sh"), " 3 corpus out/corpus tokenizer"));
  EXPECT_EQ(done.code, 0) << done.all();
  EXPECT_EQ(done.all().find("shard 1 of 3"), std::string::npos) << done.all();
  expect_bytes_of_one_process();
}

}  // namespace
}  // namespace megalith::test
