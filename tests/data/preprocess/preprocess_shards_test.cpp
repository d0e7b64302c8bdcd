#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <random>

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/data/merge/merge_shards.h"
#include "libcore/data/preprocess/preprocess.h"
#include "libcore/data/preprocess/shard_hashes.h"
#include "libcore/data/shards/shard_failure.h"
#include "libcore/io/files/file.h"
#include "tests/data/shards/member_files.h"
#include "tests/support/faults.h"
#include "tests/support/files.h"
#include "tests/support/large.h"

namespace {
bool no_locks = false;
}

/// Lets a file system seem to have no locks.
extern "C" int flock(int fd, int operation) noexcept {
  if (!no_locks) return static_cast<int>(::syscall(SYS_flock, fd, operation));
  errno = ENOLCK;
  return -1;
}

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::Fault;

/// Documents of numbers, which are their own ids for the NullTokenizer. Every ninth line is bad.
std::string corpus(int first, int count) {
  std::string text;
  for (int i = first; i < first + count; ++i) {
    std::string numbers;
    for (int n = 0; n <= i % 23; ++n) numbers += concat(n > 0 ? " " : "", (i * 31 + n) % 60'000);
    text += i % 9 == 4 ? concat("bad line ", i, "\n")
                       : concat("{\"text\":\"", numbers, "\",\"t\":\"", i, "\"}", i % 4 == 0 ? "\r\n" : "\n");
  }
  return text;
}

class PreprocessShards : public testing::Test {
 protected:
  PreprocessShards() {
    previous_ = set_log_sink([this](const std::string& line) { logged_ += line + '\n'; });
    fs::create_directory(dir_ / "in");
    fs::create_directory(dir_ / "whole");
    write_file(dir_ / "in/a.jsonl", corpus(0, 400));
    write_file(dir_ / "in/b.json", "[{\"text\":\"1 2\",\"t\":\"3\"},{\"text\":\"4\",\"t\":\"5\"}]");
    write_file(dir_ / "in/c.jsonl.zst", test::seekable_zstd(corpus(400, 300), 1500));
    write_file(dir_ / "in/d.jsonl.gz", test::bgzf(corpus(700, 300), 900));
    fs::copy_file(test::test_data("io/parquet/goldens/numbers.parquet"), dir_ / "in/e.parquet");
    config_.inputs = {dir_ / "in"};
    config_.json_keys = {"text", "t"};
    config_.on_error = OnError::kSkip;
    config_.append_eod = true;
    config_.workers = 1;
    config_.save_interval = 0;
    tokenizer_.type = "NullTokenizer";
    config_.vocab_size = 60'000;
  }
  ~PreprocessShards() override {
    no_locks = false;
    set_log_sink(previous_);
  }

  /// What one process writes.
  std::map<std::string, std::string> whole() {
    config_.output_prefix = dir_ / "whole/set";
    config_.rejects = dir_ / "whole/rejects";
    EXPECT_EQ(run_preprocess(config_, tokenizer_, {}), 0);
    return contents("whole");
  }
  int run(const std::string& shard) {
    config_.output_prefix = dir_ / "out/set";
    config_.rejects = dir_ / "out/rejects";
    config_.shard = shard;
    return run_preprocess_shards(config_, tokenizer_, {});
  }
  /// The exit code, also that of an error.
  int code_of(const std::string& shard) {
    try {
      return run(shard);
    } catch (const Error& error) {
      return exit_code(error.kind());
    }
  }
  /// Runs in a child process with a fault.
  test::FaultRun run_with(const Fault& fault, const std::string& shard) {
    return test::run_with_fault(fault, [&] {
      if (const int code = run(shard); code != 0) fail(ErrorKind::kComm, "exit code ", code);
    });
  }
  /// Does `work` in processes that are killed at random calls, until one is not. Work that begins again after
  /// a kill must have fewer than `calls`.
  static void kill_until_done(std::mt19937& random, int& kills, unsigned calls,
                              const std::function<void()>& work) {
    while (true) {
      const test::FaultRun done =
          test::run_with_fault({.mode = Fault::kKill, .at = static_cast<int>(1 + random() % calls)}, work);
      if (!done.killed) {
        EXPECT_EQ(done.exit_code, 0);
        return;
      }
      ++kills;
    }
  }
  void do_with_kills(int count, std::mt19937& random, int& kills) {
    for (int shard = 0; shard < count; ++shard)
      kill_until_done(random, kills, 400, [&] {
        if (const int code = run(concat(shard, '/', count)); code != 0)
          fail(ErrorKind::kComm, "exit code ", code);
      });
  }
  void find_seen_with_kills(int count, std::mt19937& random, int& kills) {
    kill_until_done(random, kills, 400U + 64U * static_cast<unsigned>(count),
                    [&] { find_seen(dir_ / "hashes"); });
  }
  /// What merging the shards gives.
  std::map<std::string, std::string> merged() {
    fs::remove_all(dir_ / "merged");
    fs::create_directory(dir_ / "merged");
    MergeConfig config;
    config.shards = dir_ / "out/set";
    config.rejects = dir_ / "out/rejects";
    config.output_prefix = dir_ / "merged/set";
    merge_shards(config, {});
    fs::rename(dir_ / "out/rejects", dir_ / "merged/rejects");
    return contents("merged");
  }
  /// The files of a folder by name. Of a sidecar, the part of a .bin and the checksum are left out.
  std::map<std::string, std::string> contents(const std::string& folder) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(dir_ / folder)) {
      const std::string name = entry.path().filename();
      if (name.starts_with('.')) continue;
      files[name] =
          name.ends_with(".json") ? without_parts(read_file(entry.path())) : read_file(entry.path());
    }
    return files;
  }
  static std::string without_parts(const std::string& text) {
    const size_t begin = text.find("\"bin_parts\""), end = text.find("\"options\""),
                 seal = text.find("\"checksum\"");
    EXPECT_TRUE(begin < end && end < seal) << text;
    return text.substr(0, begin) + text.substr(end, seal - end);
  }

  test::TempDir dir_;
  PreprocessConfig config_;
  TokenizerConfig tokenizer_;
  std::string logged_;
  LogSink previous_;
};

TEST_F(PreprocessShards, GiveTheBytesOfOneProcess) {
  const auto expected = whole();
  ASSERT_EQ(expected.size(), 7U);
  for (const ShardBy by : {ShardBy::kBytes, ShardBy::kFiles})
    for (const int count : {1, 3, 7, 64}) {
      SCOPED_TRACE(count);
      fs::remove_all(dir_ / "out");
      config_.shard_by = by;
      if (count == 7)  // in an order of their own, each by another process
        for (const char* shard : {"3/7", "0/7", "5-6/7", "1/7", "4/7", "2/7"}) EXPECT_EQ(run(shard), 0);
      else
        EXPECT_EQ(run(concat("0-", count - 1, '/', count)), 0);
      EXPECT_EQ(merged(), expected);
    }
}

TEST_F(PreprocessShards, CutPlainTextBetweenParagraphs) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += concat(i, ' ', i + 1, i % 3 == 0 ? "\n\n\n" : "\n \n");
  write_file(dir_ / "in/a.txt", text);
  config_.text = TextUnit::kParagraph;
  config_.json_keys = {"text"};
  const auto expected = whole();
  EXPECT_EQ(run("0-6/7"), 0);
  EXPECT_EQ(merged(), expected);
}

// What shards leave there while they run must not be part of the inputs of the others.
TEST_F(PreprocessShards, MayBeWrittenToTheFolderOfTheCorpus) {
  const auto expected = whole();
  fs::create_directory_symlink(dir_ / "in", dir_ / "out");
  fs::copy_file(test::test_data("data/goldens/stopped.resume.json"), dir_ / "in/other.resume.json");
  write_failure(dir_ / "in/set-00002-of-00003", {65, "a bad line"});
  config_.dedup_write = dir_ / "in";
  EXPECT_EQ(run("1/3"), 0);
  config_.dedup_write.clear();
  EXPECT_EQ(run("0/3"), 0);
  EXPECT_EQ(run("1-2/3"), 0);
  EXPECT_EQ(merged(), expected);
}

// An engine may start many more shards than there is work for. Almost all of such a shard's time is that of
// putting its output on the disk: three files, and their folder before and after the .idx gets its name.
TEST_F(PreprocessShards, WithoutWorkSyncWhatTheyWriteOnce) {
  config_.on_error = OnError::kStrict;
  config_.json_keys = {"text"};
  config_.output_prefix = dir_ / "whole/set";
  config_.shard = "1/1000000";
  const std::vector<test::FileCall> calls =
      test::run_logged([&] { EXPECT_EQ(run_preprocess_shards(config_, tokenizer_, {}), 0); });
  EXPECT_NE(logged_.find("reading 0 B of 0 files"), std::string::npos) << logged_;
  const auto is_sync = [](const test::FileCall& call) { return call.kind == test::FileCall::kSync; };
  EXPECT_EQ(std::count_if(calls.begin(), calls.end(), is_sync), 5);
}

TEST_F(PreprocessShards, AreNotDoneTwice) {
  EXPECT_EQ(run("0-2/3"), 0);
  const auto before = fs::last_write_time(dir_ / "out/set-00001-of-00003_text_document.bin");
  logged_.clear();
  EXPECT_EQ(run("1/3"), 0);
  EXPECT_NE(logged_.find("shard 1 of 3: already complete"), std::string::npos) << logged_;
  EXPECT_EQ(fs::last_write_time(dir_ / "out/set-00001-of-00003_text_document.bin"), before);
  config_.append_eod = false;
  logged_.clear();
  EXPECT_EQ(run("1/3"), 0);
  EXPECT_EQ(logged_.find("already complete"), std::string::npos) << "with other options it is another shard";
  EXPECT_THROW(merged(), Error);
}

TEST_F(PreprocessShards, ThatAreDamagedAreDoneAgain) {
  const auto expected = whole();
  EXPECT_EQ(run("0-2/3"), 0);
  for (const char* damaged : {"_text_document.bin", "_t_document.idx"}) {
    fs::resize_file(dir_ / concat("out/set-00001-of-00003", damaged), 100);
    EXPECT_EQ(run("1/3"), 0);
    EXPECT_EQ(merged(), expected) << damaged;
  }
  fs::resize_file(dir_ / "out/rejects-00001-of-00003", 5);
  EXPECT_THROW(merged(), Error);
  EXPECT_EQ(run("1/3"), 0);
  EXPECT_EQ(merged(), expected) << "the rejected lines";
}

TEST_F(PreprocessShards, LeaveTheReasonWhyTheyCannotBeDone) {
  config_.on_error = OnError::kStrict;
  config_.rejects.clear();
  config_.output_prefix = dir_ / "out/set";
  config_.shard = "0-1/2";
  EXPECT_EQ(run_preprocess_shards(config_, tokenizer_, {}), 65);
  const std::string reason = read_file(dir_ / "out/set-00000-of-00002.failed.json");
  EXPECT_NE(reason.find("a.jsonl:5:1: "), std::string::npos) << reason;
  // A place in a file is counted from where the shard begins in it.
  EXPECT_NE(read_file(dir_ / "out/set-00001-of-00002.failed.json").find(" (counted from byte "),
            std::string::npos);
  config_.on_error = OnError::kSkip;
  EXPECT_EQ(run_preprocess_shards(config_, tokenizer_, {}), 0);
  EXPECT_FALSE(file_exists(dir_ / "out/set-00000-of-00002.failed.json"));
  config_.inputs = {dir_ / "absent"};
  try {
    run_preprocess_shards(config_, tokenizer_, {});
    ADD_FAILURE() << "reads what is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNoInput);
  }
  for (const char* shard : {"0", "1"})
    EXPECT_NE(read_file(dir_ / concat("out/set-0000", shard, "-of-00002.failed.json")).find("66"),
              std::string::npos);
}

TEST_F(PreprocessShards, EndWithTheirErrorWhereNoReasonCanBeLeft) {
  config_.inputs = {dir_ / "absent"};
  config_.output_prefix = dir_ / "in/a.jsonl/set";  // a file, not a folder
  config_.shard = "0/2";
  try {
    run_preprocess_shards(config_, tokenizer_, {});
    ADD_FAILURE() << "reads what is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNoInput) << error.what();
  }
}

TEST_F(PreprocessShards, SayHowToContinueAfterASignal) {
  set_log_sink([this](const std::string& line) {
    logged_ += line + '\n';
    if (line.starts_with("shard 1 of 3: reading ")) std::raise(SIGUSR1);
  });
  for (const bool hashes : {false, true}) {
    fs::remove_all(dir_ / "out");
    config_.dedup_write = hashes ? dir_ / "hashes" : "";
    logged_.clear();
    EXPECT_EQ(run("0-2/3"), 75);
    const char* const said = hashes ? "stopped by SIGUSR1; run the same command again\n"
                                    : "SIGUSR1; run the same command to resume\n";
    EXPECT_NE(logged_.find(said), std::string::npos) << logged_;
    EXPECT_EQ(logged_.find("shard 2 of 3"), std::string::npos) << logged_;
    EXPECT_EQ(file_exists(dir_ / "hashes/shard-00000-of-00003.hashes.json"), hashes) << "of shard 0";
  }
}

// The second shard's own inputs are the same, but it has left out a document that is nowhere else any more.
TEST_F(PreprocessShards, AreDoneAgainWhenEarlierShardsHaveOtherDocuments) {
  const auto lines = [](const char* text) { return concat("{\"text\":\"", text, "\",\"t\":\"1\"}\n"); };
  fs::remove_all(dir_ / "in");
  fs::create_directory(dir_ / "in");
  write_file(dir_ / "in/b.jsonl", lines("1 2"));
  for (const char* first : {"1 2", "3 4"}) {
    write_file(dir_ / "in/a.jsonl", lines(first));
    config_.dedup_write = dir_ / "hashes";
    EXPECT_EQ(run("0-1/2"), 0);
    find_seen(dir_ / "hashes");
    std::swap(config_.dedup_write, config_.dedup_read);
    EXPECT_EQ(run("0-1/2"), 0);
    std::swap(config_.dedup_write, config_.dedup_read);
  }
  const auto joined = merged();
  config_.dedup_write.clear();
  config_.shard.clear();
  config_.dedup = Dedup::kExact;
  EXPECT_EQ(joined, whole());
  fs::remove_all(dir_ / "hashes");
  config_.dedup = Dedup::kNone;
  config_.dedup_read = dir_ / "hashes";
  logged_.clear();
  EXPECT_EQ(run("1/2"), 0);
  EXPECT_NE(logged_.find("already complete"), std::string::npos) << "hashes that were removed: " << logged_;
}

// Otherwise the second shard would leave out a document that the first one has no more.
TEST_F(PreprocessShards, WantStepTwoAgainAfterStepOneOfAnEarlierShard) {
  const auto lines = [](const char* text) { return concat("{\"text\":\"", text, "\",\"t\":\"1\"}\n"); };
  fs::remove_all(dir_ / "in");
  fs::create_directory(dir_ / "in");
  write_file(dir_ / "in/a.jsonl", lines("1 2"));
  write_file(dir_ / "in/b.jsonl", lines("1 2"));
  config_.dedup_write = dir_ / "hashes";
  EXPECT_EQ(run("0-1/2"), 0);
  find_seen(dir_ / "hashes");
  std::swap(config_.dedup_write, config_.dedup_read);
  EXPECT_EQ(run("0-1/2"), 0);
  write_file(dir_ / "in/a.jsonl", lines("3 4"));  // as long as before
  std::swap(config_.dedup_write, config_.dedup_read);
  EXPECT_EQ(run("0-1/2"), 0);
  std::swap(config_.dedup_write, config_.dedup_read);
  EXPECT_EQ(code_of("1/2"), 65) << "what was complete before";
  fs::remove_all(dir_ / "out");
  EXPECT_EQ(code_of("1/2"), 65) << "what is not complete";
  EXPECT_EQ(find_seen(dir_ / "hashes").seen, 0U);
  EXPECT_EQ(run("0-1/2"), 0);
}

/// Into how many shards the work of a test with kills is divided, and how often they are killed for each
/// number; the large tests try all.
std::vector<int> counts_to_kill() {
  return test::large_tests_wanted() ? std::vector{1, 3, 7, 64} : std::vector{7};
}
int wanted_kills() {
  return test::large_tests_wanted() ? 100 : 10;
}

TEST_F(PreprocessShards, AreTheSameAfterKills) {
  const auto expected = whole();
  config_.chunk_size = 20;
  std::mt19937 random(7);
  for (const int count : counts_to_kill()) {
    SCOPED_TRACE(count);
    for (int kills = 0; kills < wanted_kills();) {
      fs::remove_all(dir_ / "out");
      do_with_kills(count, random, kills);
      ASSERT_EQ(merged(), expected) << kills;
    }
  }
}

// The folders are mounted elsewhere there, and the inputs were copied, so that their times are others.
TEST_F(PreprocessShards, ResumeOnAnotherMachine) {
  const auto expected = whole();
  Fault fault{.mode = Fault::kKill, .at = 60};
  config_.chunk_size = 10;
  for (; !file_exists(dir_ / "out/set-00000-of-00001.resume.json"); fault.at += 10) run_with(fault, "0/1");
  fs::copy(dir_ / "in", dir_ / "mounted");
  fs::remove_all(dir_ / "in");
  config_.inputs = {dir_ / "mounted"};
  logged_.clear();
  EXPECT_EQ(run("0/1"), 0);
  EXPECT_NE(logged_.find("Resuming after "), std::string::npos) << logged_;
  EXPECT_EQ(merged(), expected);
}

TEST_F(PreprocessShards, BeginAgainWithAStateOfNoUse) {
  const auto expected = whole();
  config_.chunk_size = 10;
  for (const char* damaged :
       {"out/set-00000-of-00001.resume.json", "out/set-00000-of-00001_t_document.lengths.partial"}) {
    fs::remove_all(dir_ / "out");
    for (Fault fault{.mode = Fault::kKill, .at = 100};
         !file_exists(dir_ / "out/set-00000-of-00001.resume.json"); fault.at += 10)
      run_with(fault, "0/1");
    write_file(dir_ / damaged, "");
    logged_.clear();
    EXPECT_EQ(run("0/1"), 0) << damaged;
    EXPECT_NE(logged_.find("this shard begins again"), std::string::npos) << logged_;
    EXPECT_EQ(merged(), expected);
  }
}

TEST_F(PreprocessShards, LeaveOneWholeSetAfterTwoAttemptsAtOnce) {
  const auto expected = whole();
  config_.chunk_size = 20;
  std::mt19937 random(3);
  for (const bool locks : {true, false}) {
    no_locks = !locks;
    for (int turn = 0; turn < 6; ++turn) {
      fs::remove_all(dir_ / "out");
      test::FaultWatch watch;
      const int kill_at = static_cast<int>(1 + random() % 2000);
      const pid_t other = ::fork();
      if (other == 0) {
        watch.arm({.mode = turn % 2 == 0 ? Fault::kKill : Fault::kNone, .at = kill_at});
        ::_exit(code_of("0-1/2"));
      }
      const int code = run_with({}, "0-1/2").exit_code;
      int status = 0;
      ASSERT_EQ(::waitpid(other, &status, 0), other);
      EXPECT_TRUE(code == 0 || (locks && code == 75)) << code;
      EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0 || (locks && WEXITSTATUS(status) == 75))
          << status;
      if (code != 0) {
        EXPECT_EQ(run("0-1/2"), 0);
      }
      EXPECT_EQ(merged(), expected);
    }
  }
}

TEST_F(PreprocessShards, LeaveOutTheDocumentsOfEarlierShards) {
  write_file(dir_ / "in/e.jsonl", corpus(100, 500) + corpus(300, 200) + corpus(950, 100));
  config_.dedup = Dedup::kExact;
  config_.min_chars = 8;
  const auto expected = whole();
  config_.dedup = Dedup::kNone;
  for (const int count : {1, 3, 7, 64}) {
    SCOPED_TRACE(count);
    fs::remove_all(dir_ / "out");
    fs::remove_all(dir_ / "hashes");
    const std::string all = concat("0-", count - 1, '/', count);
    config_.dedup_write = dir_ / "hashes";
    EXPECT_EQ(run(all), 0);
    EXPECT_FALSE(file_exists(dir_ / "out"));
    EXPECT_EQ(run(all), 0);
    EXPECT_NE(logged_.find("shard 0 of " + std::to_string(count) + ": already complete"), std::string::npos);
    config_.dedup_write.clear();
    config_.dedup_read = dir_ / "hashes";
    EXPECT_EQ(code_of(all), 65) << "megalith-data dedup is missing";
    EXPECT_GT(find_seen(dir_ / "hashes").documents, 500U);
    EXPECT_EQ(run(all), 0);
    EXPECT_EQ(merged(), expected);
    config_.dedup_read.clear();
  }
}

TEST_F(PreprocessShards, HashDocumentsThatWereChangedAgain) {
  const auto lines = [](const char* text) { return concat("{\"text\":\"", text, "\",\"t\":\"1\"}\n"); };
  fs::remove_all(dir_ / "in");
  fs::create_directory(dir_ / "in");
  write_file(dir_ / "in/a.jsonl", lines("1 2"));
  write_file(dir_ / "in/b.jsonl", lines("1 2"));
  config_.dedup_write = dir_ / "hashes";
  EXPECT_EQ(run("0-1/2"), 0);
  write_file(dir_ / "in/a.jsonl", lines("3 4"));  // as long as before
  find_seen(dir_ / "hashes");
  config_.dedup_write.clear();
  config_.dedup_read = dir_ / "hashes";
  EXPECT_EQ(code_of("0/2"), 65) << "the hashes are of other inputs";
  std::swap(config_.dedup_write, config_.dedup_read);
  EXPECT_EQ(run("0-1/2"), 0);
  EXPECT_EQ(find_seen(dir_ / "hashes").seen, 0U);
}

TEST_F(PreprocessShards, LeaveOutTheSameDocumentsAfterKills) {
  write_file(dir_ / "in/f.jsonl", corpus(100, 500) + corpus(300, 200));
  config_.dedup = Dedup::kExact;
  const auto expected = whole();
  config_.dedup = Dedup::kNone;
  config_.chunk_size = 20;
  std::mt19937 random(11);
  for (const int count : counts_to_kill()) {
    SCOPED_TRACE(count);
    for (int kills = 0; kills < wanted_kills();) {
      fs::remove_all(dir_ / "out");
      fs::remove_all(dir_ / "hashes");
      config_.dedup_read = "";
      config_.dedup_write = dir_ / "hashes";
      do_with_kills(count, random, kills);
      find_seen_with_kills(count, random, kills);
      std::swap(config_.dedup_write, config_.dedup_read);
      do_with_kills(count, random, kills);
      ASSERT_EQ(merged(), expected) << kills;
    }
  }
}

TEST_F(PreprocessShards, RefuseWhatContradictsThem) {
  const auto complaint = [&](auto&& change) {
    PreprocessConfig config = config_;
    config.output_prefix = "out";
    config.shard = "3/20";
    change(config);
    Problems problems;
    config.validate(problems);
    return problems.empty() ? std::string() : problems.list().front().message();
  };
  EXPECT_EQ(complaint([](auto&) {}), "");
  EXPECT_EQ(complaint([](auto& c) { c.shard = "20/20"; }),
            "--shard \"20/20\": wanted I/N or I-J/N with 0 <= I <= J < N <= 1000000, or auto");
  EXPECT_EQ(complaint([](auto& c) { c.shard = "auto"; }),
            "--shard auto needs --shards, the number of all shards (engines give the number of those that "
            "run now)");
  EXPECT_EQ(complaint([](auto& c) { c.shards = 30; }),
            "--shard 3/20 and --shards 30 contradict each other; leave the second out");
  EXPECT_EQ(complaint([](auto& c) { c.shard = "", c.shards = 30; }), "--shards needs --shard auto");
  EXPECT_EQ(complaint([](auto& c) { c.shard = "", c.shard_by = ShardBy::kFiles; }),
            "--shard-by needs --shard");
  EXPECT_EQ(complaint([](auto& c) { c.inputs = {"-"}; }), "");
  EXPECT_EQ(complaint([](auto& c) {
              c.inputs = {"-", "a"};
            }),
            "--shard: stdin (\"-\") holds the lines of one shard; wanted it alone, or files");
  EXPECT_EQ(complaint([](auto& c) { c.output_prefix = "-"; }), "");
  EXPECT_EQ(complaint([](auto& c) { c.output_prefix = "-", c.shard = "3-4/20"; }),
            "--output-prefix - is for one shard, not for 3-4/20");
  EXPECT_EQ(complaint([](auto& c) { c.output_prefix = "-", c.resume = true; }),
            "--resume needs files, and --output-prefix - is stdout");
  EXPECT_EQ(complaint([](auto& c) { c.output_prefix = "-", c.shard = ""; }),
            "--output-prefix -, a tar archive on stdout, is for the datasets of one shard; give --shard I/N, "
            "or the prefix of files");
  EXPECT_EQ(complaint([](auto& c) { c.dedup = Dedup::kExact; }),
            "--dedup exact and --shard contradict each other: a shard does not know the documents of the "
            "others; give --dedup-write, then --dedup-read");
}

}  // namespace
}  // namespace megalith
