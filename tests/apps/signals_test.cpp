// A signal ends every phase of every program at once.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "tests/apps/program_folder.h"

namespace megalith::test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// What a program does for longer than a signal may take.
struct Phase {
  const char* name;
  std::string before;   // makes what the command reads
  std::string command;  // does not end by itself while the test waits
  std::string begun;    // what the output has once the phase has begun; empty: the program's start begins it
};

const char* const kLines = "yes '{\"text\": \"the end of the world\"}' | ";

/// Makes a file of 400,000 such lines.
std::string many(const char* line, const char* file) {
  return concat("yes '", line, "' | head -n 400000 > ", file);
}

/// The command with a blend of two datasets in place of one.
std::string blend_instead(std::string command) {
  const std::string one = "--data-path set ";
  return command.replace(command.find(one), one.size(), "--data-path 0.5 set 0.5 b ");
}

std::vector<Phase> training_phases() {
  const std::string tune = "megalith-finetune --model model --threads 1 --lr 0.01 --lora --output-dir out ";
  return {{"pretrain: order of samples", "", kTrainOnSet + "--train-iters 20000000", "order of samples"},
          {"pretrain: order of samples in a file", "mkdir -m 700 kept",
           kTrainOnSet + "--train-iters 20000000 --data-cache-path kept", "order of samples"},
          {"pretrain: order of a blend", "cp set.bin b.bin; cp set.idx b.idx",
           blend_instead(kTrainOnSet) + "--train-iters 10000000", "order of samples"},
          {"pretrain: tokens of texts", many("the end of the world, and of all that is in it", "text.txt"),
           "megalith-pretrain --num-layers 1 --hidden-size 256 --num-attention-heads 2 --seq-length 8 "
           "--max-position-embeddings 8 --tokenizer-model model --micro-batch-size 1 --lr 0.01 --threads 1 "
           "--train-iters 9000000 --train-data-path text.txt",
           "tokenizer"},
          {"pretrain: steps and saves", "",
           kTrainOnSet + "--train-iters 900000 --exit-duration-in-mins 9 --save saved --save-interval 1",
           "iteration"},
          {"finetune: records", many("{\"src\": \"one two three\", \"tgt\": \"four five six\"}", "r.jsonl"),
           tune + "--data r.jsonl --max-steps 9000000", "device: "},
          {"finetune: losses under the reference",
           many("{\"prompt\": \"one\", \"chosen\": \"two\", \"rejected\": \"three\"}", "p.jsonl"),
           tune + "--data p.jsonl --dpo --max-steps 9000000", "memory known"}};
}

std::vector<Phase> other_phases() {
  const std::string preprocess = "megalith-preprocess --tokenizer-model model --output-prefix out --input ",
                    again = " || exit $?; done", sets = "$(yes set | head -n 100000)";
  return {
      {"preprocess: reading", "", "sleep 99 | " + preprocess + "-", ""},
      {"preprocess: tokenizing", "", kLines + preprocess + "-", ""},
      {"preprocess: sentences", "",
       concat(kLines, "NLTK_DATA=", test_data("text/goldens/punkt"), ' ', preprocess, "- --split-sentences"),
       ""},
      {"tokenizer: training", "",
       concat(kLines, "megalith-tokenizer train --input - --vocab-size 300 --output out"), ""},
      {"tokenizer: encoding", "",
       concat(kLines, "megalith-tokenizer encode --tokenizer-model model > /dev/null"), ""},
      {"data: verify", "", "megalith-data verify " + sets + " > /dev/null", ""},
      {"data: cat", "", "megalith-data cat " + sets + " --count 9999 > /dev/null", ""},
      {"data: stats", "", "megalith-data stats " + sets + " > /dev/null", ""},
      {"merge", "mkdir more; for i in $(seq 300); do ln set.bin more/$i.bin; ln set.idx more/$i.idx; done",
       "while :; do rm -f out.*; megalith-merge --input more --output-prefix out" + again, ""},
      {"convert", "", "while :; do rm -rf out; megalith-convert model --to megatron --output out" + again,
       ""},
      {"generate", "", "yes a | megalith-generate --model model --threads 1 --max-new-tokens 2", ""},
      {"eval", many("{\"text\": \"the end of the world\"}", "t.jsonl"),
       "megalith-eval --model model --tasks t.jsonl --threads 1", ""},
      {"autoplan: simulation", "",
       "while :; do megalith-autoplan --num-layers 96 --hidden-size 8192 --num-attention-heads 64 "
       "--seq-length 2048 --vocab-size 50257 --global-batch-size 2048 --simulate 512,1024" +
           again,
       ""},
      {"autoplan: profile", "", "megalith-autoplan profile --output profile.json", ""},
      {"doctor", "", "while :; do megalith-doctor; done", ""}};
}

/// A shell command in a process group of its own, whose output goes to the file "log" of the folder.
class Group {
 public:
  Group(const std::string& folder, const std::string& command) : log_(folder + "/log") {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // so that the end of each process of the group is seen
    leader_ = ::fork();
    if (leader_ == 0) begin(folder, command);
    ::setpgid(leader_, leader_);  // whichever of the two comes first
  }
  ~Group() {
    ::kill(-leader_, SIGKILL);
    while (runs()) std::this_thread::sleep_for(milliseconds(5));
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// Whether a process of the group has not ended.
  bool runs() const {
    while (::waitpid(-leader_, nullptr, WNOHANG) > 0) {
    }
    return ::kill(-leader_, 0) == 0;
  }
  /// Whether one of its processes is a program of Megalith.
  bool has_program() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const pid_t process = std::atoi(entry.path().filename().c_str());  // 0: no process's folder
      if (process <= 0 || ::getpgid(process) != leader_) continue;
      std::ifstream comm(entry.path() / "comm");
      std::string name;
      if (std::getline(comm, name) && name.starts_with("megalith-")) return true;
    }
    return false;
  }
  bool has_logged(const std::string& text) const { return log().find(text) != std::string::npos; }
  std::string log() const { return file_exists(log_) ? read_file(log_) : std::string(); }
  void signal(int number) const { ::kill(-leader_, number); }

 private:
  [[noreturn]] void begin(const std::string& folder, const std::string& command) const {
    ::setpgid(0, 0);
    std::signal(SIGINT, SIG_DFL);
    const int out = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int in = ::open("/dev/null", O_RDONLY);
    if (::chdir(folder.c_str()) != 0 || ::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(out, 2) < 0)
      ::_exit(9);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(9);
  }

  std::string log_;
  pid_t leader_ = -1;
};

/// Waits until the phase has begun, for a minute at most, and some time more: a signal that came too early
/// would end less than the phase. Whether it has begun.
bool await_beginning(const Phase& phase, const Group& group) {
  const auto begun = [&] {
    return phase.begun.empty() ? group.has_program() : group.has_logged(phase.begun);
  };
  const auto deadline = Clock::now() + std::chrono::minutes(1);
  while (!begun()) {
    if (!group.runs() || Clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(10));
  }
  std::this_thread::sleep_for(milliseconds(phase.begun.empty() ? 400 : 150));
  return true;
}

class Signals : public ProgramFolder, public testing::WithParamInterface<int> {
 protected:
  void ends(const Phase& phase) {
    const TempDir work;
    const std::string from = dir_.path().string(), to = work.path().string(),
                      path = std::filesystem::path(app("data")).parent_path().string();
    ASSERT_EQ(run_command(concat("cp -r ", from, "/model ", from, "/set.* ", to, "; cd ", to, "; ",
                                 phase.before.empty() ? ":" : phase.before))
                  .code,
              0)
        << phase.name;
    const Group group(to, concat("PATH=", path, ":$PATH\n", phase.command));
    ASSERT_TRUE(await_beginning(phase, group)) << phase.name << " did not begin: " << group.log();
    ASSERT_TRUE(group.runs()) << phase.name << " was over: " << group.log();
    const auto begin = Clock::now();
    group.signal(GetParam());
    constexpr milliseconds kMost{2000};  // one second, and another for a busy machine
    while (group.runs() && Clock::now() - begin < 10 * kMost) std::this_thread::sleep_for(milliseconds(2));
    const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
    EXPECT_LT(took, kMost) << phase.name << ": " << took.count() << " ms; " << group.log();
    RecordProperty(phase.name, std::to_string(took.count()));
  }
};
INSTANTIATE_TEST_SUITE_P(Of, Signals, testing::Values(SIGTERM, SIGINT), [](const auto& signal) {
  return std::string(signal.param == SIGTERM ? "Sigterm" : "Sigint");
});

TEST_P(Signals, EndEveryPhaseOfTraining) {
  for (const Phase& phase : training_phases()) ends(phase);
}

TEST_P(Signals, EndEveryPhaseOfOtherPrograms) {
  for (const Phase& phase : other_phases()) ends(phase);
}

}  // namespace
}  // namespace megalith::test
