#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// Shards whose lines come on stdin, and whose files leave as an archive.
class ShardStream : public testing::Test {
 protected:
  ShardStream() {
    fs::create_directory(dir_ / "spool");
    fs::create_directory(dir_ / "parts");
    for (int i = 0; i < 50; ++i)
      lines_ += i % 7 == 3 ? concat("bad ", i, '\n') : concat("{\"text\": \"", i, " 2 3\"}\n");
    write_file(dir_ / "all.jsonl", lines_);
  }
  CommandResult run(const std::string& command) const {
    return run_command(
        concat("cd ", dir_.path().string(), " && export TMPDIR=", dir_ / "spool", "; ", command));
  }
  static std::string preprocess(const std::string& options) {
    return concat(app("preprocess"),
                  " --tokenizer-type NullTokenizer --vocab-size 100 --on-error skip --rejects rej ", options);
  }
  bool spool_is_empty() const { return fs::is_empty(dir_ / "spool"); }

  TempDir dir_;
  std::string lines_;
};

TEST_F(ShardStream, GivesTheBytesOfOneProcess) {
  ASSERT_EQ(run(preprocess("--input all.jsonl --output-prefix one")).code, 0);
  for (const char* part : {"0/2 1,20p", "1/2 21,50p"}) {
    const std::string shard(part, 3), range(part + 4);
    const CommandResult made =
        run(concat("sed -n ", range, " all.jsonl | ",
                   preprocess("--input - --output-prefix - --shard " + shard), " > part.tar"));
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_NE(made.err.find("shard "), std::string::npos) << "the log";
    ASSERT_EQ(run("tar -xf part.tar -C parts").code, 0);
  }
  EXPECT_TRUE(spool_is_empty());
  const CommandResult merged =
      run(app("merge") + " --shards parts/shard --rejects parts/rej --output-prefix merged");
  ASSERT_EQ(merged.code, 0) << merged.all();
  for (const char* end : {".bin", ".idx"})
    EXPECT_EQ(read_file(dir_ / concat("merged_text_document", end)),
              read_file(dir_ / concat("one_text_document", end)));
  EXPECT_EQ(read_file(dir_ / "parts/rej"), read_file(dir_ / "rej"));
}

TEST_F(ShardStream, HoldsNoLineOfTheLog) {
  const std::string options = " --input - --output-prefix - --shard 0/2 --log-interval 1";
  ASSERT_EQ(run(concat(preprocess(options), " < all.jsonl > plain.tar")).code, 0);
  const CommandResult noted =
      run(concat(preprocess(options + " --partitions 1"), " < all.jsonl > noted.tar"));
  EXPECT_NE(noted.err.find("ignored, no effect here: --partitions"), std::string::npos) << noted.err;
  EXPECT_NE(noted.err.find("reading stdin"), std::string::npos) << noted.err;
  EXPECT_EQ(read_file(dir_ / "noted.tar"), read_file(dir_ / "plain.tar"));
}

// Wherever the archive ends, merge refuses what it leaves.
TEST_F(ShardStream, ThatWasCutOffIsRefused) {
  ASSERT_EQ(run(preprocess("--input all.jsonl --output-prefix - --shard 0/1") + " > whole.tar").code, 0);
  const std::string whole = read_file(dir_ / "whole.tar");
  const size_t contents = whole.size() - 1024;  // without the end
  for (size_t kept = 0; kept < contents; kept += 512) {
    write_file(dir_ / "part.tar", whole.substr(0, kept));
    (void)run("rm -rf parts && mkdir parts && tar -xf part.tar -C parts");
    const CommandResult merged = run(app("merge") + " --shards parts/shard --output-prefix merged");
    EXPECT_TRUE(merged.code == 65 || merged.code == 66) << kept << ' ' << merged.all();
    if (HasFailure()) return;
  }
}

TEST_F(ShardStream, LeavesNothingAfterAnError) {
  const CommandResult made =
      run(concat("echo bad | ", app("preprocess"),
                 " --tokenizer-type NullTokenizer --vocab-size 100 --input - --output-prefix - "
                 "--shard 0/2"));
  EXPECT_EQ(made.code, 65);
  EXPECT_EQ(made.out, "");
  EXPECT_NE(made.err.find("stdin:1:1: "), std::string::npos) << made.err;
  EXPECT_TRUE(spool_is_empty());
}

TEST_F(ShardStream, LeavesNothingOnAFullDisk) {
  std::string many;
  for (int i = 0; i < 20; ++i) many += lines_;
  write_file(dir_ / "many.jsonl", many);
  const CommandResult made =
      run("ulimit -f 8; " + preprocess("--input - --output-prefix - --shard 0/2") + " < many.jsonl");
  EXPECT_EQ(made.code, 74);
  EXPECT_EQ(made.out, "");
  EXPECT_NE(made.err.find("File too large"), std::string::npos) << made.err;
  EXPECT_TRUE(spool_is_empty());
}

// The signal comes when the shard waits for more lines: stdin has no end.
TEST_F(ShardStream, EndsWith75AfterASignal) {
  const CommandResult made = run(concat(
      "mkfifo lines; exec 3<>lines; cat all.jsonl >&3; : > log; ",
      preprocess("--input - --output-prefix - --shard 0/2"),
      " < lines 2> log & worker=$!; n=0; until grep -q 'reading stdin' log || [ $n = 600 ]; do "
      "n=$((n + 1)); sleep 0.1; done; kill -USR1 $worker; wait $worker; code=$?; cat log >&2; exit $code"));
  EXPECT_EQ(made.code, 75);
  EXPECT_NE(made.err.find("stopped by SIGUSR1; nothing was written"), std::string::npos) << made.err;
  EXPECT_EQ(made.out, "");
  EXPECT_TRUE(spool_is_empty());
}

}  // namespace
}  // namespace megalith::test
