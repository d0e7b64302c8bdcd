#include "libcore/doctor/trial_run.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <sys/wait.h>
#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/shell_word.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {
using State = Finding::State;

constexpr char kOptions[] =
    " --mock-data --vocab-size 64 --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 8 "
    "--max-position-embeddings 8 --micro-batch-size 2 --train-iters 2 --lr 1e-3 --eval-iters 0";

struct Ended {
  int status = 0;
  std::string last_line;  // that is not empty
};

/// Runs a shell command, both of whose streams are read.
Ended run(const std::string& command) {
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr)
    fail(ErrorKind::kSystem, "no process could be started: ", std::strerror(errno), "; raise ulimit -u");
  Ended ended;
  char line[4096];
  while (std::fgets(line, sizeof line, pipe) != nullptr)
    if (const std::string_view text = trim(line); !text.empty()) ended.last_line = text;
  ended.status = ::pclose(pipe);
  return ended;
}

Finding failed(const std::string& text, const std::string& remedy) {
  return {.check = "smallest run", .state = State::kBad, .text = text, .remedy = remedy};
}

}  // namespace

Findings check_smallest_run(const std::string& pretrain) {
  if (::access(pretrain.c_str(), X_OK) != 0) {
    const bool there = ::access(pretrain.c_str(), F_OK) == 0;
    return {failed(
        concat(pretrain, ": ", std::strerror(errno)),
        there ? "its file system may be mounted noexec: install Megalith elsewhere, or mount it with exec"
              : "install Megalith again")};
  }
  const Ended ended = run("cd / && exec " + shell_word(pretrain) + kOptions + " 2>&1 </dev/null");
  if (ended.status == 0)
    return {{.check = "smallest run", .state = State::kGood, .text = "two steps on the CPU", .remedy = {}}};
  const Finding said = finding_of({}, State::kBad, ended.last_line);
  return {failed(concat(said.text.empty() ? "it said nothing" : said.text, " (",
                        WIFEXITED(ended.status) ? concat("exit code ", WEXITSTATUS(ended.status))
                                                : concat("signal ", WTERMSIG(ended.status)),
                        ')'),
                 said.remedy.empty() ? "see the other findings" : said.remedy)};
}

}  // namespace megalith
