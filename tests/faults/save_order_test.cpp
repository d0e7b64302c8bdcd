// Checks the order of every save's calls (recorded by inject.cpp). A file's contents must be on the disk
// before it gets its name. A tracker may name only what survives a power failure. No output's name may be
// lost, whatever folders were created for it.
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "libcore/base/text.h"
#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/io/files/file.h"
#include "tests/apps/program_folder.h"
#include "tests/support/compiler.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// Tracks what a power failure could take away after the calls so far.
class Disk {
 public:
  explicit Disk(std::string cwd) : cwd_(std::move(cwd)) {}

  void take(const std::string& line) {
    const std::vector<std::string> words = split(line, '\t');
    ASSERT_EQ(words.size(), 4U) << line;
    const std::string &what = words[0], &file = words[1], path = absolute(words[2]),
                      other = absolute(words[3]);
    if (what == "write") unsynced_.insert(file);
    if (what == "sync") sync(file);
    if (what == "create" || what == "mkdir") enter(path, file);
    if (what == "mkdir") folders_[path] = file;
    if (what == "link") enter(other, file);
    if (what == "rename" || what == "exchange") rename(path, other, file);
  }

  /// The names of the finished run's outputs that a power failure could take away.
  std::vector<std::string> lost() const {
    std::vector<std::string> names;
    for (const auto& [path, file] : unsynced_entries_)
      if (fs::exists(path) && path.find("/.") == std::string::npos) names.push_back(path);
    return names;
  }
  size_t shown() const { return shown_; }
  size_t trackers() const { return trackers_; }

 private:
  std::string absolute(const std::string& path) const {
    if (path.empty() || path.starts_with("/proc/")) return path;
    return (fs::path(cwd_) / path).lexically_normal().string();
  }
  static std::string folder_of(const std::string& path) { return fs::path(path).parent_path().string(); }

  void enter(const std::string& path, const std::string& file) {
    if (entries_.emplace(path, file).second || entries_[path] != file) unsynced_entries_[path] = file;
    entries_[path] = file;
  }
  void sync(const std::string& file) {
    unsynced_.erase(file);
    for (auto entry = unsynced_entries_.begin(); entry != unsynced_entries_.end();) {
      const auto folder = folders_.find(folder_of(entry->first));
      const bool synced = folder != folders_.end() ? folder->second == file : number_of(entry->first) == file;
      entry = synced ? unsynced_entries_.erase(entry) : std::next(entry);
    }
  }
  /// The inode number of the folder of `path`, which the program did not create; empty if there is none.
  static std::string number_of(const std::string& path) {
    struct stat info {};
    return ::stat(folder_of(path).c_str(), &info) == 0 ? std::to_string(info.st_ino) : "";
  }

  void rename(const std::string& from, const std::string& to, const std::string& file) {
    const bool shows = !fs::path(to).filename().string().starts_with(".");
    if (shows) expect_whole(from, to);
    if (shows && fs::path(to).filename() == kTrackerFile && to.find("/.") == std::string::npos)
      expect_nothing_unsynced_above(to);
    move_below(entries_, from, to);
    move_below(unsynced_entries_, from, to);
    move_below(folders_, from, to);
    entries_[to] = unsynced_entries_[to] = file;
  }
  /// When `from` is renamed to `to`, expects that everything in it is on the disk.
  void expect_whole(const std::string& from, const std::string& to) {
    ++shown_;
    for (const auto& [path, file] : entries_)
      if (path == from || path.starts_with(from + "/")) {
        EXPECT_EQ(unsynced_.count(file), 0U) << to << " appears before fsync of " << path;
        if (path != from) {
          EXPECT_EQ(unsynced_entries_.count(path), 0U) << to << " appears before the name of " << path;
        }
      }
  }
  /// When a tracker gets its name, expects that the names of the checkpoints beside it, and of new folders
  /// above it, are on the disk.
  void expect_nothing_unsynced_above(const std::string& tracker) {
    ++trackers_;
    const std::string root = folder_of(tracker);
    for (const auto& [path, file] : unsynced_entries_) {
      const bool hidden = path.find("/.") != std::string::npos;
      EXPECT_FALSE(root.starts_with(path) || (!hidden && folder_of(path) == root && path != tracker))
          << tracker << " appears before the name of " << path;
    }
  }
  static void move_below(std::map<std::string, std::string>& paths, const std::string& from,
                         const std::string& to) {
    std::map<std::string, std::string> moved;
    for (const auto& [path, file] : paths) {
      const bool below = path == from || path.starts_with(from + "/");
      moved[below ? to + path.substr(from.size()) : path] = file;
    }
    paths = std::move(moved);
  }

  std::string cwd_;
  std::set<std::string> unsynced_;  // numbers of the files that have bytes not yet synced
  std::map<std::string, std::string> entries_, unsynced_entries_, folders_;  // path -> file number
  size_t shown_ = 0, trackers_ = 0;
};

struct Save {
  std::string name, command;  // `command` writes to new/deep/out
  bool tracks = false;
};

const std::vector<Save>& saves() {
  static const std::string kTwo = kTrainOnSet + "--train-iters 2 --save new/deep/out --save-interval 1 ";
  static const std::string kTuned = kTuneModel + "new/deep/out ";
  static const std::vector<Save> kAll = {
      {"preprocess",
       "megalith-preprocess --input lines.jsonl --workers 1 --tokenizer-type NullTokenizer --vocab-size 9 "
       "--output-prefix new/deep/out"},
      {"merge", "megalith-merge --input sets set --output-prefix new/deep/out"},
      {"convert_hf", "megalith-convert model --to hf --output new/deep/out"},
      {"convert_shards", "megalith-convert model --to hf --max-shard-size 20KB --output new/deep/out"},
      {"convert_megatron", "megalith-convert model --to megatron --output new/deep/out"},
      {"convert_ranks", "megalith-convert model --to megatron --tp 2 --pp 2 --output new/deep/out"},
      {"convert_megalith", "megalith-convert model --to megalith --output new/deep/out"},
      {"convert_gguf", "megalith-convert model --to gguf --output new/deep/out.gguf"},
      {"convert_gguf_folder", "megalith-convert model --to gguf --output new/deep/out"},
      {"tokenizer", "megalith-tokenizer train --input lines.jsonl --vocab-size 260 --output new/deep/out"},
      {"pretrain", kTwo + "--async-save", true},
      {"pretrain_waiting", kTwo + "--no-async-save", true},
      {"pretrain_keep", kTwo + "--keep-last 1", true},
      {"pretrain_ranks", kTwo + "--nproc 2 --global-batch-size 4", true},
      {"pretrain_torch", kTwo + "--ckpt-format torch", true},
      {"pretrain_torch_dist", kTwo + "--ckpt-format torch_dist", true},
      {"pretrain_pth", kTwo + "--ckpt-format pth"},
      {"pretrain_output_dir", kTrainOnSet + "--train-iters 2 --output-dir new/deep/out --save-interval 1",
       true},
      {"pretrain_figures", kTwo + "--log-json l.jsonl --report r.html --tensorboard-dir new/board", true},
      {"finetune", kTuned, true},
      {"finetune_merged", kTuned + "--merge-weights", true},
      {"finetune_answers", kTuned + "--eval-data records/train.json --do-generation --max-new-tokens 2",
       true},
      {"finetune_whole",
       "megalith-finetune --model model --data records --max-steps 2 --micro-batch-size 1 --lr 0.01 "
       "--threads 1 --output-dir new/deep/out",
       true},
  };
  return kAll;
}

class SaveOrder : public ProgramFolder, public testing::WithParamInterface<size_t> {};

TEST_P(SaveOrder, ShowsNothingBeforeItIsOnTheDisk) {
  if (kSanitizer) GTEST_SKIP() << "sanitizers must be loaded before inject.cpp's library";
  const Save& save = saves()[GetParam()];
  const CommandResult result = run("export LD_PRELOAD=" MEGALITH_BINARY_DIR
                                   "/bin/libmegalith_inject.so MEGALITH_FAULT_LOG=$PWD/.calls\nexec " +
                                   save.command);
  ASSERT_EQ(result.code, 0) << result.all();
  Disk disk(dir_.path().string());
  for (const std::string& line : split(read_file(dir_ / ".calls"), '\n'))
    if (!line.empty()) disk.take(line);
  EXPECT_GT(disk.shown(), 0U);
  EXPECT_EQ(disk.trackers() > 0, save.tracks);
  for (const std::string& path : disk.lost()) ADD_FAILURE() << path << ": its name may be lost";
}

INSTANTIATE_TEST_SUITE_P(Saves, SaveOrder, testing::Range(size_t{0}, saves().size()),
                         [](const auto& save) { return saves()[save.param].name; });

}  // namespace
}  // namespace megalith::test
