// Preprocesses with kill -9, a full disk or a short write at every system call in turn. Every file that
// appears must be complete, and an interrupted run must resume and give the same bytes.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/io/files/file.h"
#include "tests/data/preprocess/preprocess_fixture.h"
#include "tests/support/faults.h"
#include "tests/support/files.h"
#include "tests/support/lossy_disk.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::Fault;
using test::FaultRun;

class PreprocessCrash : public testing::Test {
 protected:
  PreprocessCrash() {
    previous_ = set_log_sink([](const std::string&) {});
    std::mt19937 random(29);
    std::string lines, array;
    for (int i = 0; i < 30; ++i) {
      const std::string text(random() % 900, static_cast<char>('a' + random() % 26));
      lines +=
          i % 9 == 4 ? "bad\n" : "{\"text\":[\"" + text + "\",\"x\"],\"t\":\"" + text.substr(0, 5) + "\"}\n";
      array += (array.empty() ? "[" : ",\n") + ("{\"text\":\"" + text + "\",\"t\":\"\"}");
    }
    write_file(dir_ / "lines.jsonl", lines);
    write_file(dir_ / "array.json", array + "]");
    EXPECT_EQ(test::run_command("gzip -k " + dir_ / "lines.jsonl").code, 0);
    config_.inputs = {dir_ / "array.json", dir_ / "lines.jsonl.gz"};
    config_.json_keys = {"text", "t"};
    config_.output_prefix = dir_ / "out/set";
    config_.rejects = dir_ / "out/rejects";
    config_.on_error = OnError::kSkip;
    config_.append_eod = true;
    config_.workers = 1;
    config_.chunk_size = 20;
    config_.save_interval = 0;
  }
  ~PreprocessCrash() override { set_log_sink(previous_); }

  void preprocess_now() const { preprocess(config_, test::ByteTokenizer()); }
  /// Preprocesses without a fault, in a child process in which fsync does nothing, which saves time.
  void preprocess_whole() const {
    EXPECT_EQ(test::run_with_fault({}, [&] { preprocess_now(); }).exit_code, 0);
  }
  /// The output files by name, without hidden ones: a file has a hidden name for a moment before it gets its
  /// own, and kill -9 may leave it there.
  std::map<std::string, std::string> outputs() const {
    std::map<std::string, std::string> contents;
    if (!fs::exists(dir_.path() / "out")) return contents;
    for (const auto& entry : fs::directory_iterator(dir_.path() / "out"))
      if (!entry.path().filename().string().starts_with('.'))
        contents[entry.path().filename()] = read_file(entry.path());
    return contents;
  }
  /// The output of an uninterrupted run.
  std::map<std::string, std::string> expected() {
    const bool resume = std::exchange(config_.resume, false);
    preprocess_whole();
    config_.resume = resume;
    std::map<std::string, std::string> contents = outputs();
    fs::remove_all(dir_.path() / "out");
    EXPECT_EQ(contents.size(), 3 * config_.json_keys.size() + 1);  // three files of each key, and the rejects
    return contents;
  }
  /// Runs with the fault at each system call in turn; `check` is called after each run.
  void at_every_call(Fault fault, const std::function<void(const FaultRun&)>& check) {
    for (fault.at = 1;; ++fault.at) {
      fs::remove_all(dir_.path() / "out");
      const FaultRun run = test::run_with_fault(fault, [&] { preprocess_now(); });
      if (run.calls < fault.at) break;
      SCOPED_TRACE(concat("call ", fault.at, ", ", run.call));
      check(run);
      if (HasFailure()) return;
    }
    EXPECT_GT(fault.at, 30);
  }
  /// Checks that each .idx that exists has its right bytes, and that its .bin is complete.
  static void expect_only_whole(const std::map<std::string, std::string>& found,
                                const std::map<std::string, std::string>& whole) {
    for (const std::string key : {"set_text_document", "set_t_document"}) {
      if (!found.contains(key + ".idx")) continue;
      EXPECT_EQ(found.at(key + ".idx"), whole.at(key + ".idx"));
      ASSERT_TRUE(found.contains(key + ".bin"));
      EXPECT_EQ(found.at(key + ".bin"), whole.at(key + ".bin"));
    }
  }

  test::TempDir dir_;
  PreprocessConfig config_;
  LogSink previous_;
};

TEST_F(PreprocessCrash, ShowsNoIndexWithoutItsTokensWhereverItIsKilled) {
  const auto whole = expected();
  at_every_call({.mode = Fault::kKill}, [&](const FaultRun&) { expect_only_whole(outputs(), whole); });
}

/// Writes so many tokens that a separate thread writes them around the page cache.
TEST_F(PreprocessCrash, ShowsNoIndexWithoutManyTokensWhereverItIsKilled) {
  std::string lines;
  for (int i = 0; i < 20; ++i)
    lines += "{\"text\":\"" + std::string(40'000, static_cast<char>('a' + i)) + "\",\"t\":\"\"}\n";
  write_file(dir_ / "lines.jsonl", lines);
  config_.inputs = {dir_ / "lines.jsonl"};
  const auto whole = expected();
  ASSERT_GT(whole.at("set_text_document.bin").size(), size_t{3} << 19);
  at_every_call({.mode = Fault::kKill}, [&](const FaultRun&) { expect_only_whole(outputs(), whole); });
  at_every_call({.mode = Fault::kFail, .error = ENOSPC}, [&](const FaultRun& run) {
    expect_only_whole(outputs(), whole);
    if (run.exit_code == 0) {
      EXPECT_EQ(outputs(), whole);
    } else {
      EXPECT_EQ(run.exit_code, 74);
    }
  });
}

/// Also after a power failure, there must be no .idx without its tokens, even if a dataset of the same name
/// existed before.
TEST_F(PreprocessCrash, ShowsNoIndexWithoutItsTokensAfterThePowerFailed) {
  const auto whole = expected();
  const auto is_of = [](const std::map<std::string, std::string>& all, const std::string& name,
                        const std::string& bytes) { return all.contains(name) && all.at(name) == bytes; };
  for (const bool replaces : {false, true}) {
    fs::create_directory(dir_.path() / "out");
    std::map<std::string, std::string> before;
    if (replaces) {
      config_.append_eod = false;
      preprocess_whole();
      before = outputs();
      config_.append_eod = true;
    }
    test::LossyDisk disk(dir_ / "out");
    const std::vector<test::FileCall> calls = test::run_logged([&] { preprocess_now(); });
    fs::rename(dir_.path() / "out", dir_.path() / "real");
    std::mt19937 random(3);
    for (size_t done = 0; done <= calls.size(); ++done) {
      SCOPED_TRACE(concat("after ", done, " of ", calls.size(), " calls"));
      for (int variant = 0; variant < 8; ++variant) {
        disk.restore(dir_ / "out", [&] { return variant == 0 || (variant > 1 && random() % 2 == 0); });
        const auto found = outputs();
        for (const std::string key : {"set_text_document", "set_t_document"}) {
          if (!found.contains(key + ".idx")) continue;
          const std::string& idx = found.at(key + ".idx");
          const auto& dataset = is_of(before, key + ".idx", idx) ? before : whole;
          EXPECT_EQ(idx, dataset.at(key + ".idx"));
          EXPECT_TRUE(is_of(found, key + ".bin", dataset.at(key + ".bin"))) << key;
          if (!found.contains(key + ".json")) continue;
          EXPECT_EQ(found.at(key + ".json"), dataset.at(key + ".json"));
        }
        if (done == calls.size()) {
          EXPECT_EQ(found, whole);
        }
      }
      if (HasFailure()) return;
      if (done < calls.size()) disk.apply(calls[done]);
    }
    fs::remove_all(dir_.path() / "real");
    fs::remove_all(dir_.path() / "out");
  }
}

TEST_F(PreprocessCrash, SaysSoWhenAnyCallFails) {
  const auto whole = expected();
  for (const int error : {ENOSPC, EIO})
    at_every_call({.mode = Fault::kFail, .error = error}, [&](const FaultRun& run) {
      const auto found = outputs();
      expect_only_whole(found, whole);
      if (run.exit_code == 0) {
        EXPECT_EQ(found, whole);
      } else {
        EXPECT_EQ(run.exit_code, 74);
      }
    });
}

TEST_F(PreprocessCrash, FinishesShortWrites) {
  const auto whole = expected();
  at_every_call({.mode = Fault::kShort}, [&](const FaultRun& run) {
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_EQ(outputs(), whole);
  });
}

// The second run is killed, too; a third run completes the work.
TEST_F(PreprocessCrash, ResumesToTheSameBytesWhereverItIsKilled) {
  config_.dedup = Dedup::kExact;
  const auto whole = expected();
  config_.resume = true;
  for (const int again : {0, 40}) {
    at_every_call({.mode = Fault::kKill}, [&](const FaultRun&) {
      expect_only_whole(outputs(), whole);
      if (again > 0) {
        test::run_with_fault({.mode = Fault::kKill, .at = again}, [&] { preprocess_now(); });
        expect_only_whole(outputs(), whole);
      }
      preprocess_whole();
      EXPECT_EQ(outputs(), whole);
    });
  }
}

TEST_F(PreprocessCrash, ResumesTextsToTheSameBytesWhereverItIsKilled) {
  std::string paragraphs;
  for (int i = 0; i < 40; ++i)
    paragraphs += (i % 9 == 4 ? std::string("bad \xFF") : std::string(i, 'a')) + "\r\nb\r\n \r\n";
  write_file(dir_ / "a.txt", paragraphs);
  write_file(dir_ / "b.txt", "\n\n" + paragraphs + "b");
  EXPECT_EQ(test::run_command("gzip " + dir_ / "b.txt").code, 0);
  config_.inputs = {dir_ / "a.txt", dir_ / "b.txt.gz", dir_ / "a.txt"};
  config_.json_keys = {"text"};
  config_.dedup = Dedup::kExact;
  for (const TextUnit unit : {TextUnit::kParagraph, TextUnit::kFile}) {
    config_.text = unit;
    const auto whole = expected();
    config_.resume = true;
    at_every_call({.mode = Fault::kKill}, [&](const FaultRun&) {
      expect_only_whole(outputs(), whole);
      preprocess_whole();
      EXPECT_EQ(outputs(), whole);
    });
    config_.resume = false;
    fs::remove_all(dir_.path() / "out");
  }
}

TEST_F(PreprocessCrash, ResumesAfterAFullDisk) {
  const auto whole = expected();
  config_.resume = true;
  at_every_call({.mode = Fault::kFail, .error = ENOSPC}, [&](const FaultRun&) {
    preprocess_whole();
    EXPECT_EQ(outputs(), whole);
  });
}

TEST_F(PreprocessCrash, DoesNotReadAgainWhatIsDone) {
  config_.resume = true;
  Fault fault{.mode = Fault::kKill};
  for (fault.at = 90; !file_exists(dir_ / "out/set.resume.json"); fault.at += 10)
    test::run_with_fault(fault, [&] { preprocess_now(); });
  std::vector<std::string> lines;
  set_log_sink([&](const std::string& line) { lines.push_back(line); });
  preprocess_now();
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(),
                          [](const std::string& line) { return line.starts_with("Resuming after "); }));
  EXPECT_FALSE(file_exists(dir_ / "out/set.resume.json"));
}

/// The saved state may be days old, and its files may have been truncated or changed in the meantime: such a
/// file must be refused.
TEST_F(PreprocessCrash, RefusesToResumeFromWhatWasChanged) {
  config_.dedup = Dedup::kExact;
  const auto whole = expected();
  config_.resume = true;
  // Killed by the first call after the journal has its name.
  for (Fault fault{.mode = Fault::kKill, .at = 100}; !file_exists(dir_ / "out/set.resume.json"); ++fault.at)
    test::run_with_fault(fault, [&] { preprocess_now(); });
  const auto left = outputs();
  EXPECT_EQ(left.size(), 9U);  // the journal, three files for each of two keys, the hashes and the rejects
  std::mt19937 random(17);
  std::map<std::string, int> refused;
  const auto resume = [&](const std::string& name, const std::string& bytes) {
    fs::remove_all(dir_.path() / "out");
    fs::create_directory(dir_.path() / "out");
    for (const auto& [file, contents] : left) write_file(dir_ / ("out/" + file), contents);
    write_file(dir_ / ("out/" + name), bytes);
    const int code = test::run_with_fault({}, [&] { preprocess_now(); }).exit_code;
    if (code == 0) {
      EXPECT_EQ(outputs(), whole) << name;
      return;
    }
    EXPECT_EQ(code, 65) << name;
    ++refused[name];
    auto now = outputs();
    now.erase(name);  // the resumed run may have truncated the changed file to the size in the journal
    for (const auto& [file, contents] : now) EXPECT_TRUE(left.at(file).starts_with(contents)) << file;
  };
  for (const auto& [name, bytes] : left) {
    for (int turn = 0; turn < 16; ++turn) {
      std::string bad = bytes;
      const size_t at = random() % std::max<size_t>(bytes.size(), 1);
      if (turn % 4 == 0)
        bad.resize(at);
      else if (!bad.empty())
        bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 8));
      resume(name, bad);
    }
    EXPECT_GT(refused[name], 4) << name;
  }
}

TEST_F(PreprocessCrash, RefusesToResumeWithOtherInputsOrOptions) {
  config_.resume = true;
  for (Fault fault{.mode = Fault::kKill, .at = 90}; !file_exists(dir_ / "out/set.resume.json");
       fault.at += 10)
    test::run_with_fault(fault, [&] { preprocess_now(); });
  const auto refusal = [&] {
    try {
      preprocess_now();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto before = outputs();
  config_.append_eod = false;
  EXPECT_NE(refusal().find("another \"append_eod\": true, now false"), std::string::npos) << refusal();
  config_.append_eod = true;
  config_.text = TextUnit::kFile;
  EXPECT_NE(refusal().find("another \"text\": none, now \"file\""), std::string::npos) << refusal();
  config_.text = TextUnit::kNone;
  write_file(dir_ / "array.json", read_file(dir_ / "array.json"));  // gives the file a new modification time
  EXPECT_NE(refusal().find("another \"inputs\""), std::string::npos) << refusal();
  EXPECT_EQ(outputs(), before);
}

}  // namespace
}  // namespace megalith
