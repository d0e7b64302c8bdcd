#include "libcore/evaluate/task_specs.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

std::string problems_of(const TaskOptions& options) {
  Problems problems;
  options.validate(problems);
  return problems.text();
}

TEST(TaskSpecs, AreNamesAndFiles) {
  Problems problems;
  const std::vector<TaskSpec> specs =
      task_specs({.tasks = {"hellaswag=h.jsonl,arc_easy=a=b.jsonl", "dir/x=1/own.jsonl.gz"},
                  .fewshot_data = {"own=train.jsonl"}},
                 problems);
  EXPECT_TRUE(problems.empty()) << problems.text();
  ASSERT_EQ(specs.size(), 3U);
  EXPECT_EQ(specs[0].form, find_task_form("hellaswag"));
  EXPECT_EQ(specs[1].path, "a=b.jsonl");
  EXPECT_EQ(specs[2].name, "own");
  EXPECT_EQ(specs[2].path, "dir/x=1/own.jsonl.gz");
  EXPECT_EQ(specs[2].form, nullptr);
  EXPECT_EQ(specs[2].examples, "train.jsonl");
}

TEST(TaskSpecs, SayWhatIsNotATask) {
  struct Case {
    TaskOptions options;
    const char* said;
  };
  for (const Case& one : {
           Case{{.tasks = {"hellaswag"}},
                "--tasks hellaswag: wanted hellaswag=FILE: tasks are files that you"},
           Case{{.tasks = {"helaswag=f"}}, "did you mean hellaswag?"},
           Case{{.tasks = {"mmlu=f"}},
                "--tasks mmlu=f: wanted NAME=FILE with NAME one of hellaswag, arc_easy"},
           Case{{.tasks = {"piqa="}}, "--tasks piqa=: wanted NAME=FILE"},
           Case{{.tasks = {"a.jsonl,"}}, "wanted NAME=FILE"},
           Case{{.tasks = {"x/a.jsonl", "y/a.jsonl"}}, "--tasks names two tasks \"a\""},
           Case{{.tasks = {"a.jsonl"}, .fewshot_data = {"b=c"}, .fewshots = 1},
                "--fewshot-data b=c: wanted NAME=FILE with NAME a task of --tasks"},
           Case{{.tasks = {"a.jsonl"}, .fewshot_data = {"a=c,a=d"}, .fewshots = 1},
                "has two files for \"a\""},
           Case{{.tasks = {"a.jsonl"}, .fewshot_data = {"a=c"}},
                "--fewshot-data is not used without --num-fewshot"},
       })
    EXPECT_NE(problems_of(one.options).find(one.said), std::string::npos)
        << one.said << ": " << problems_of(one.options);
}

}  // namespace
}  // namespace megalith
