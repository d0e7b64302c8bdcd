#include "libcore/evaluate/task_items.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

class TaskItemFiles : public testing::Test {
 protected:
  std::string file(const std::string& text, const std::string& name = "items.jsonl") {
    write_file(dir_ / name, text);
    return dir_ / name;
  }
  TaskItems read(const char* form, const std::string& text) {
    return read_task_items(file(text), find_task_form(form));
  }
  /// The message with which a file is refused.
  std::string refusal(const char* form, const std::string& text) {
    try {
      read(form, text);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      return error.what();
    }
    return "accepted";
  }
  test::TempDir dir_;
};

TEST_F(TaskItemFiles, CleansHellaSwagAsItsTaskDoes) {
  EXPECT_EQ(hellaswag_text("  a [title] b [step] c  d   "), "a. b c d");
  EXPECT_EQ(hellaswag_text("[a\nb] [c] d[e"), "[a\nb] d[e");
  EXPECT_EQ(hellaswag_text("[[x]] ]"), "] ]");
  EXPECT_EQ(hellaswag_text(""), "");
}

TEST_F(TaskItemFiles, TakesArcInBothForms) {
  const TaskItems published =
      read("arc_easy", R"({"question":{"stem":"Q?","choices":[{"text":"x","label":"1"},{"text":"y",)"
                       R"("label":"2"}]},"answerKey":"2"})");
  const TaskItems copied = read(
      "arc_challenge", R"({"question":"Q?","choices":{"text":["x","y"],"label":["1","2"]},"answerKey":"2"})");
  for (const TaskItems& items : {published, copied}) {
    ASSERT_EQ(items.items.size(), 1U);
    EXPECT_EQ(items.items[0].context, "Question: Q?\nAnswer:");
    EXPECT_EQ(items.items[0].continuations, (std::vector<std::string>{"x", "y"}));
    EXPECT_EQ(items.items[0].answer, 1U);
  }
}

TEST_F(TaskItemFiles, TakesPiqasLabelsFromTheItemOrTheFileBesideIt) {
  const std::string item = R"({"goal":"g","sol1":"a","sol2":"b"})";
  EXPECT_EQ(read("piqa", R"({"goal":"g","sol1":"a","sol2":"b","label":1})").items[0].answer, 1U);
  const std::string none = refusal("piqa", item);
  EXPECT_NE(none.find("items.jsonl:1: has no \"label\", and there is no "), std::string::npos) << none;
  EXPECT_NE(none.find("items-labels.lst with the labels"), std::string::npos) << none;
  file("1\n0\n", "items-labels.lst");
  const TaskItems items = read("piqa", item + "\n\n" + item + "\n");
  EXPECT_EQ(items.items[0].answer, 1U);
  EXPECT_EQ(items.items[1].answer, 0U);
  ASSERT_EQ(test::run_command("gzip -k " + file(item + "\n" + item)).code, 0);
  EXPECT_EQ(read_task_items(dir_ / "items.jsonl.gz", find_task_form("piqa")).items[0].answer, 1U);
  EXPECT_NE(refusal("piqa", item).find("items-labels.lst: has 2 labels for 1 items"), std::string::npos);
  EXPECT_NE(
      refusal("piqa", item + "\n" + item + "\n" + item).find("items.jsonl:3: the item is number 3, but"),
      std::string::npos);
  file("2\n", "items-labels.lst");
  EXPECT_NE(refusal("piqa", item).find("\"label\" is \"2\"; wanted an index from 0 to 1"), std::string::npos);
}

TEST_F(TaskItemFiles, KnowsOurOwnFormByItsMembers) {
  const TaskItems choices = read("none", R"({"context":"c","choices":["a","b"],"answer":1})");
  EXPECT_EQ(choices.kind, TaskKind::kChoices);
  EXPECT_EQ(choices.items[0].answer, 1U);
  const TaskItems texts = read("none", "{\"text\":\"one\"}\r\n{\"text\":\"\"}");
  EXPECT_EQ(texts.kind, TaskKind::kText);
  EXPECT_EQ(texts.items.size(), 2U);
}

TEST_F(TaskItemFiles, CutsLambadaAtItsLastBlank) {
  const TaskItems items =
      read("lambada", "{\"text\":\"a b  c\"}\n{\"text\":\"word\"}\n{\"text\":\"\\u00a0a\\nb \"}");
  EXPECT_EQ(items.items[0].context, "a b ");
  EXPECT_EQ(items.items[0].continuations[0], " c");
  EXPECT_EQ(items.items[1].context, "");
  EXPECT_EQ(items.items[1].continuations[0], " word");
  EXPECT_EQ(items.items[2].context, "\u00a0a\nb");
  EXPECT_EQ(items.items[2].continuations[0], " ");
}

// Each message has file and line, what was found and what was wanted.
TEST_F(TaskItemFiles, AreRefusedWithTheirPlace) {
  struct Case {
    const char *form, *text, *said;
  };
  const std::string swag = R"({"ctx_a":"a","ctx_b":"b","activity_label":"l","endings":["x","y"],"label":)";
  for (const Case& one : {
           Case{"none", "\n{\"context\":\"c\"}",
                ":2: has no \"choices\"; found {\"context\": \"c\"} (an item has "
                "context, choices, answer, or text alone)"},
           Case{"none", "{\"context\":\"c\",\"choices\":[],\"answer\":0}",
                ":1: \"choices\" is []; wanted a list"},
           Case{"none", "{\"context\":\"c\",\"choices\":[\"a\",2],\"answer\":0}",
                "\"choices\" is 2; wanted a text"},
           Case{"none", "{\"context\":\"c\",\"choices\":[\"a\"],\"answer\":1}",
                "\"answer\" is 1; wanted an index from 0 to 0"},
           Case{"none", "{\"context\":\"c\",\"choices\":[\"a\"],\"answer\":0.5}",
                "\"answer\" is 0.5; wanted"},
           Case{"none", "{\"text\":\"a\"}\n{\"context\":\"c\",\"choices\":[\"a\"],\"answer\":0}",
                ":2: has choices; the items before it are texts, and a file holds one kind"},
           Case{"none", "{\"context\":\"c\",\"choices\":[\"a\"],\"answer\":0}\n{\"text\":\"a\"}",
                ":2: is a text; the items before it have choices"},
           Case{"none", "[1]", ":1: found [1]; wanted an object"},
           Case{"none", "{\"text\":", ":1"},
           Case{"none", "", "holds no item; wanted one a line"},
           Case{"lambada", "{\"txt\":\"a\"}",
                ":1: has no \"text\"; found {\"txt\": \"a\"} (an item has text)"},
           Case{"arc_easy",
                R"({"question":{"stem":"Q","choices":[{"text":"x","label":"A"}]},"answerKey":"B"})",
                ":1: \"answerKey\" is \"B\"; the choices are A"},
           Case{"arc_easy", R"({"question":"Q","choices":{"text":["x"],"label":["A","B"]},"answerKey":"B"})",
                "\"choices\" has 1 texts and 2 labels"},
           Case{"hellaswag", R"({"ctx":"a"})", ":1: has no \"activity_label\""},
       }) {
    const std::string said = refusal(one.form, one.text);
    EXPECT_NE(said.find(one.said), std::string::npos) << one.text << ": " << said;
    EXPECT_NE(said.find("items.jsonl"), std::string::npos) << said;
  }
  EXPECT_NE(refusal("hellaswag", swag + "\"\"}").find("; files without answers cannot be scored"),
            std::string::npos);
  EXPECT_EQ(refusal("hellaswag", swag + "\"1\"}"), "accepted");
  EXPECT_EQ(refusal("hellaswag", swag + "1}"), "accepted");
}

}  // namespace
}  // namespace megalith
