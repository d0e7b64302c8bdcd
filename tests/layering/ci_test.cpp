// Tests that each CI job runs a script that can also be run locally, and that the pages describe what these
// scripts do.
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/layering/tree.h"
#include "tests/support/files.h"
#include "tests/support/once/pattern.h"

namespace megalith {
namespace {
namespace fs = std::filesystem;

using test::kRoot;
using test::run_command;
using test::text_of;

constexpr char kWorkflow[] = ".github/workflows/ci.yml", kPage[] = "CONTRIBUTING.md";

struct Job {
  std::string container, script;
};

/// The jobs of the workflow, by name. A step of an unknown form fails the test.
std::map<std::string, Job> read_jobs() {
  static const test::Pattern kName(R"(^  ([a-z0-9-]+):$)"), kContainer(R"(^    container: (\S+)$)"),
      kRun(R"(^ +(- )?run: (.+)$)");
  constexpr char kGit[] = "apt-get update && apt-get install -y git";  // allowed before the checkout
  std::map<std::string, Job> jobs;
  Job* job = nullptr;
  std::istringstream lines(text_of(kWorkflow));
  for (std::string line; std::getline(lines, line);) {
    if (line == "jobs:") jobs.clear();  // names above this line are events, not jobs
    if (const auto match = kName.whole(line); !match.empty()) job = &jobs[match[1]];
    if (const auto match = kContainer.whole(line); !match.empty()) job->container = match[1];
    const test::Pattern::Match run = kRun.whole(line);
    if (run.empty() || run[2] == kGit) continue;
    EXPECT_TRUE(job->script.empty()) << "a job is one script: " << line;
    job->script = run[2];
  }
  return jobs;
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

bool is_program(const fs::path& path) {
  return fs::is_regular_file(path) &&
         (fs::status(path).permissions() & fs::perms::owner_exec) != fs::perms::none;
}

TEST(CiDefinition, EachJobIsAJobOfTheScript) {
  const std::set<std::string> known = words_of(run_command((kRoot / "tools/ci").string() + " --list").out);
  std::set<std::string> used;
  for (const auto& [name, job] : read_jobs()) {
    ASSERT_TRUE(job.script.starts_with("tools/ci ")) << name << ": " << job.script;
    used.insert(job.script.substr(std::string("tools/ci ").size()));
  }
  EXPECT_EQ(used, known);
}

TEST(CiDefinition, TheDocsHaveEachJob) {
  static const std::map<std::string, std::string> kNames = {{"debian:12", "Debian 12"},
                                                            {"ubuntu:24.04", "Ubuntu 24.04"}};
  const std::string page = text_of(kPage);
  const std::map<std::string, Job> jobs = read_jobs();
  EXPECT_EQ(jobs.size(), 8U);
  for (const auto& [name, job] : jobs) {
    ASSERT_TRUE(kNames.contains(job.container)) << name << ": " << job.container;
    const std::string row = "| `" + name + "` | " + kNames.at(job.container) + " | `" + job.script + "` |\n";
    EXPECT_NE(page.find(row), std::string::npos) << kPage << " lacks " << row;
  }
}

TEST(CiDefinition, ScriptsCallScriptsThatExist) {
  static const test::Pattern kScript(R"((^|[^\w/.])((tools|\.ci)/[a-z_]+|\./test)(?=[\s`;"]|$))");
  for (const char* file : {".ci/run", "tools/ci", "tools/check", "tools/nightly", kPage, kWorkflow}) {
    const std::string text = text_of(file);
    int found = 0;
    for (const test::Pattern::Match& at : kScript.all_in(text)) {
      EXPECT_TRUE(is_program(kRoot / at[2])) << file << " names " << at[2];
      ++found;
    }
    EXPECT_GT(found, 0) << file;
  }
}

TEST(CiDefinition, TheSubmissionRunsTheTests) {
  const std::string script = text_of(".ci/run");
  EXPECT_TRUE(script.ends_with("\n./test\n")) << script;
  EXPECT_NE(text_of(kPage).find("`.ci/run` is the same for forges that run one script: it calls `./test`"),
            std::string::npos);
}

TEST(CiDefinition, TheNightlyPartsAreThoseOfTheDocs) {
  const auto result = run_command((kRoot / "tools/nightly").string() + " nonsense");
  EXPECT_EQ(result.code, 64);
  EXPECT_NE(result.all().find("wanted fuzz, large, asan, tsan, guards, nccl or tidy"), std::string::npos)
      << result.all();
  EXPECT_NE(text_of(kPage).find("too slow for every change: fuzz, large, asan, tsan, guards, nccl, tidy"),
            std::string::npos);
}

}  // namespace
}  // namespace megalith
