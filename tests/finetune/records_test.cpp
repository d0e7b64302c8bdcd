#include "libcore/finetune/records.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/finetune/read_record.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

TEST(Records, AreReadNoFurtherThanIsAskedFor) {
  const TempDir dir;
  write_file(dir / "data.json",
             "{\"src\": \"a\", \"tgt\": \"1\"}\n\n{\"src\": \"b\", \"tgt\": \"2\"}\nno record\n");
  const auto read = [&](int64_t max_records) {
    std::string found;
    read_records(dir / "data.json", {.max_records = max_records},
                 [&](Record&& record) { found += text_of(record); });
    return found;
  };
  EXPECT_EQ(read(1), "a[1]");
  EXPECT_EQ(read(2), "a[1]b[2]");
  EXPECT_THROW(read(3), Error);
  EXPECT_THROW(read(0), Error);
}

// As pyarrow reads the file (fastparquet_snappy.jsonl), the text of its first row is "plain", that of its
// second one is empty.
TEST(Records, OfAParquetFileAreItsRows) {
  const std::string path = test_data("io/parquet/goldens/fastparquet_snappy.parquet");
  std::string found;
  const auto read = [&](int64_t max_records) {
    read_records(path, {.max_records = max_records}, [&](Record&& record) { found += text_of(record); });
  };
  read(1);
  EXPECT_EQ(found, "[plain]");
  try {
    read(2);
    FAIL() << found;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_EQ(std::string(error.what()).find(path + ": row 2: \"text\" is empty"), 0U) << error.what();
  }
}

TEST(Records, OfSourceAndTargetAreUsedAsTheyAre) {
  const Record record = read_one(R"({"src": "2+2=", "tgt": "4", "id": 7})");
  EXPECT_EQ(text_of(record), "2+2=[4]");
  EXPECT_FALSE(record.rendered);
  EXPECT_EQ(record.where, "data.json:3");
  EXPECT_EQ(text_of(read_one(R"({"prompt": "a", "completion": "b"})")), "a[b]");
  EXPECT_EQ(text_of(read_one(R"({"prompt": "a", "response": "b"})")), "a[b]");
}

// The expected texts are those of PROMPT_DICT in stanford_alpaca/train.py.
TEST(Records, OfInstructionsHaveAlpacasWords) {
  EXPECT_EQ(
      text_of(read_one(R"({"instruction": "Add.", "input": "", "output": "4"})")),
      "Below is an instruction that describes a task. Write a response that appropriately completes the "
      "request.\n\n### Instruction:\nAdd.\n\n### Response:\n[4]");
  EXPECT_EQ(
      text_of(read_one(R"({"instruction": "Add.", "input": "2 2", "output": "4"})")),
      "Below is an instruction that describes a task, paired with an input that provides further context. "
      "Write a response that appropriately completes the request.\n\n### Instruction:\nAdd.\n\n### "
      "Input:\n2 2\n\n### Response:\n[4]");
  EXPECT_EQ(text_of(read_one(R"({"instruction": "Add.", "input": "2 2", "output": "4"})",
                             {.style = PromptStyle::kPlain})),
            "Add.\n2 2[4]");
}

TEST(Records, OfConversationsAreRendered) {
  const std::string messages =
      R"({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"},
                       {"role": "assistant", "content": "a"}]})";
  const Record record = read_one(messages, with_template());
  EXPECT_TRUE(record.rendered);
  EXPECT_EQ(text_of(record), "system:s;user:q;[assistant:a;]");
  EXPECT_EQ(text_of(read_one(
                R"({"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]})",
                with_template())),
            "user:q;[assistant:a;]");
  RecordOptions chat = with_template();
  chat.style = PromptStyle::kChat;
  EXPECT_EQ(text_of(read_one(R"({"src": "q", "tgt": "a"})", chat)), "user:q;[assistant:a;]");
  expect_refused(messages, "give --chat-template FILE");
}

TEST(Records, ObeyEachKnownFieldBesideMessages) {
  const std::string turns = R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])";
  const auto read = [](const std::string& json) { return text_of(read_one(json, with_template())); };
  EXPECT_EQ(read(R"({"system": "s", "messages": )" + turns + "}"), "system:s;user:q;[assistant:a;]");
  EXPECT_EQ(read(R"({"system": "", "tools": null, "messages": )" + turns + "}"), "user:q;[assistant:a;]");
  EXPECT_EQ(read(R"({"system": "s", "conversations": [{"from": "human", "value": "q"},
                     {"from": "gpt", "value": "a"}]})"),
            "system:s;user:q;[assistant:a;]");
  for (const char* tools : {R"([{"name":"f"}])", R"("[{\"name\":\"f\"}]")"})
    EXPECT_EQ(read(R"({"messages": )" + turns + R"(, "tools": )" + tools + "}"),
              R"([{"name": "f"}];user:q;[assistant:a;])");
  EXPECT_EQ(read(R"({"messages": [{"role": "developer", "content": "d"}, {"role": "user", "content": "q"},
                     {"role": "assistant", "content": "a", "weight": 0}, {"role": "user", "content": "r"},
                     {"role": "assistant", "content": "b", "weight": 1}]})"),
            "developer:d;user:q;assistant:a;user:r;[assistant:b;]");
  EXPECT_EQ(read(R"({"messages": [{"role": "user", "content": "q"},
                     {"role": "assistant", "content": null, "tool_calls": [{"id": 1}]},
                     {"role": "tool", "content": "t", "tool_call_id": "1"},
                     {"role": "assistant", "content": "a"}]})"),
            R"(user:q;[assistant:[{"id": 1}];]tool:t;[assistant:a;])");
  EXPECT_EQ(read(R"({"prompt": "q", "messages": )" + turns + "}"), "user:q;[assistant:a;]");
}

TEST(Records, LearnTheCompletionOfMessages) {
  const std::string json = R"({"prompt": [{"role": "user", "content": "q"},
    {"role": "assistant", "content": "a"}, {"role": "user", "content": "r"}],
    "completion": [{"role": "assistant", "content": "b"}]})";
  EXPECT_EQ(text_of(read_one(json, with_template())), "user:q;assistant:a;user:r;[assistant:b;]");
  EXPECT_EQ(text_of(read_one(R"({"prompt": [{"role": "user", "content": "q"}], "completion": "b"})",
                             with_template())),
            "user:q;[assistant:b;]");
}

TEST(Records, OfPlainTextAreLearnedWhole) {
  const Record record = read_one(R"({"text": "abc"})");
  EXPECT_EQ(text_of(record), "[abc]");
  EXPECT_FALSE(record.rendered);  // so that the tokenizer's end of text follows
}

TEST(RecordPairs, HaveOneQuestion) {
  const auto conversation = [](const char* question, const char* answer) {
    return concat(R"([{"role": "user", "content": ")", question, R"("}, {"role": "assistant", "content": ")",
                  answer, R"("}])");
  };
  const auto read = [](const std::string& json) {
    return pair_of(Json::parse(json, "test"), with_template(), "data.json:3");
  };
  // As in UltraFeedback's files: the prompt and the chosen conversation are there twice.
  const RecordPair pair =
      read(concat(R"({"prompt": "q", "messages": )", conversation("q", "a"), R"(, "chosen": )",
                  conversation("q", "a"), R"(, "rejected": )", conversation("q", "b"), "}"));
  EXPECT_EQ(text_of(pair.chosen), "user:q;[assistant:a;]");
  EXPECT_EQ(text_of(pair.rejected), "user:q;[assistant:b;]");
  EXPECT_EQ(text_of(read(R"({"prompt": "q", "chosen": [{"role": "assistant", "content": "a"}],
                            "rejected": [{"role": "assistant", "content": "b"}]})")
                        .rejected),
            "user:q;[assistant:b;]");
  for (const auto& [json, why] :
       {std::pair{concat(R"({"chosen": )", conversation("q", "a"), R"(, "rejected": )",
                         conversation("r", "b"), "}"),
                  "answer different questions"},
        std::pair{concat(R"({"prompt": "x", "chosen": )", conversation("q", "a"), R"(, "rejected": )",
                         conversation("q", "b"), "}"),
                  "\"prompt\" is not a question in \"chosen\""},
        std::pair{concat(R"({"messages": )", conversation("x", "a"), R"(, "chosen": )",
                         conversation("q", "a"), R"(, "rejected": )", conversation("q", "b"), "}"),
                  "\"messages\" is not how \"chosen\" begins"},
        std::pair{concat(R"({"messages": )", conversation("q", "c"), R"(, "chosen": )",
                         conversation("q", "a"), R"(, "rejected": )", conversation("q", "b"), "}"),
                  "\"messages\" is not how \"chosen\" begins"},
        std::pair{concat(R"({"messages": )", conversation("q", "c"),
                         R"(, "prompt": "q", "chosen": "a", "rejected": "b"})"),
                  "holds both \"prompt\" and \"messages\""},
        std::pair{concat(R"({"instruction": "q", "chosen": )", conversation("q", "a"), R"(, "rejected": )",
                         conversation("q", "b"), "}"),
                  "\"instruction\" cannot be used with this \"chosen\"; give \"prompt\" instead"},
        std::pair{std::string(R"({"prompt": "q", "chosen": "a", "rejected": "b", "completion": "c"})"),
                  "holds both \"chosen\" and \"completion\""},
        std::pair{std::string(R"({"prompt": "q", "chosen": "a", "rejected": "b", "text": "q a"})"),
                  "holds both \"chosen\" and \"text\""},
        std::pair{concat(R"({"input": "i", "chosen": )", conversation("q", "a"), R"(, "rejected": )",
                         conversation("q", "b"), "}"),
                  "\"input\" cannot be used with \"chosen\""},
        std::pair{std::string(R"({"prompt": "q", "input": "i", "chosen": "a", "rejected": "b"})"),
                  "\"input\" cannot be used with \"prompt\""}}) {
    try {
      read(json);
      ADD_FAILURE() << json;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  }
}

TEST(Records, ThatAreNoneAreNamedWithTheirPlace) {
  expect_refused("[1]", "wanted an object");
  expect_refused("{}", "no member");
  expect_refused(R"({"texts": "a"})", "found \"texts\"");
  expect_refused(R"({"src": "a"})", "has no \"tgt\"");
  expect_refused(R"({"src": "a", "tgt": 4})", "\"tgt\" is 4; wanted a text");
  expect_refused(R"({"src": "a", "tgt": ""})", "\"tgt\" is empty");
  // The message cuts the quoted text between two characters, each of three bytes.
  std::string many, shown;
  for (int i = 0; i < 60; ++i) (i < 19 ? shown : many) += "\u65e5";
  expect_refused("{\"src\": \"a\", \"tgt\": [\"" + shown + many + "\"]}",
                 "\"tgt\" is [\"" + shown + "\u2026; wanted a text");
  expect_refused(R"({"instruction": "a", "output": "b", "history": [["c", "d"]]})", "\"history\"");
  expect_refused(R"({"messages": []})", "wanted a list of messages", with_template());
  expect_refused(R"({"messages": [{"role": "user", "content": "a"}]})", "no answer", with_template());
  expect_refused(R"({"messages": [{"role": "narrator", "content": "a"}]})", "is from \"narrator\"",
                 with_template());
}

std::string pair_text(const std::string& json, const RecordOptions& options = {}) {
  const RecordPair pair = pair_of(Json::parse(json, "x:1"), options, "x:1");
  return text_of(pair.chosen) + " " + text_of(pair.rejected) + " " + pair.chosen.answer + "/" +
         pair.rejected.answer;
}

TEST(RecordPairs, HoldOneQuestionAndTwoAnswers) {
  EXPECT_EQ(pair_text(R"({"prompt": "q", "chosen": "a", "rejected": "b"})"), "q[a] q[b] a/b");
  EXPECT_EQ(pair_text(R"({"instruction": "q", "input": "r", "chosen": "a", "rejected": "b"})",
                      {.style = PromptStyle::kPlain}),
            "q\nr[a] q\nr[b] a/b");
  const std::string wanted = "user:q;[assistant:a;] user:q;[assistant:b;] a/b";
  EXPECT_EQ(pair_text(R"({"conversations": [{"from": "human", "value": "q"}],
                          "chosen": {"from": "gpt", "value": "a"}, "rejected": {"from": "gpt", "value": "b"}})",
                      with_template()),
            wanted);
  EXPECT_EQ(pair_text(R"({"prompt": [{"role": "user", "content": "q"}],
                          "chosen": [{"role": "assistant", "content": "a"}],
                          "rejected": [{"role": "assistant", "content": "b"}]})",
                      with_template()),
            wanted);
  EXPECT_EQ(pair_text(R"({"chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}],
                    "rejected": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "b"}]})",
                      with_template()),
            wanted);
}

// PaddleNLP's docs/llm/dpo.md: src and tgt alternate, and the answer with the larger sort is the chosen one.
TEST(RecordPairs, OfPaddleAreSorted) {
  EXPECT_EQ(pair_text(R"({"src": ["q"], "tgt": [], "response": [["a"], ["b"]], "sort": [1, 0]})"),
            "q[a] q[b] a/b");
  EXPECT_EQ(pair_text(R"({"src": "q", "tgt": "", "response": ["a", "b"], "sort": [0, 1]})").substr(0, 4),
            "q[b]");
  EXPECT_EQ(pair_text(R"({"src": ["q", "s"], "tgt": ["r"], "response": [["a"], ["b"]], "sort": [1, 0]})",
                      with_template()),
            "user:q;assistant:r;user:s;[assistant:a;] user:q;assistant:r;user:s;[assistant:b;] a/b");
}

// Only the last answer of a conversation is learned; earlier answers belong to the prompt.
TEST(RecordPairs, LearnTheLastAnswerAlone) {
  EXPECT_EQ(
      pair_text(R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "r"},
                                       {"role": "user", "content": "s"}],
                          "chosen": {"role": "assistant", "content": "a"},
                          "rejected": {"role": "assistant", "content": "b"}})",
                with_template()),
      "user:q;assistant:r;user:s;[assistant:a;] user:q;assistant:r;user:s;[assistant:b;] a/b");
}

TEST(RecordPairs, ThatAreNoneAreNamed) {
  const auto expect_bad = [](const std::string& json, const std::string& why) {
    try {
      pair_text(json, with_template());
      ADD_FAILURE() << json;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_EQ(std::string(error.what()).find("x:1: "), 0U) << error.what();
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  };
  expect_bad("[1]", "wanted an object");
  expect_bad(R"({"src": ["q"], "tgt": [], "response": [["a"]], "sort": [1, 0]})", "wanted two answers");
  expect_bad(R"({"src": ["q"], "tgt": [], "response": [["a"], ["b"]], "sort": [1, 1]})",
             "two different numbers");
  expect_bad(R"({"src": ["q"], "tgt": ["r"], "response": [["a"], ["b"]], "sort": [1, 0]})",
             "\"src\" has 1 questions and \"tgt\" 1 answers");
  expect_bad(R"({"src": "a", "tgt": "b"})", "wanted \"chosen\" and \"rejected\"");
  expect_bad(R"({"messages": [{"role": "user", "content": "q"}], "chosen": "a", "rejected": "b",
                 "conversations": [{"from": "human", "value": "other"}]})",
             "holds both \"messages\" and \"conversations\"");
  expect_bad(R"({"prompt": "q", "chosen": "a", "rejected": "a"})", "are the same answer");
  expect_bad(R"({"prompt": "q", "chosen": "", "rejected": "a"})", "\"chosen\" is empty");
  expect_bad(R"({"prompt": "q", "chosen": "a", "rejected": 3})", "\"rejected\" is 3; wanted a text");
  expect_bad(R"({"chosen": "a", "rejected": "b"})", "answers nothing");
  expect_bad(R"({"messages": [{"role": "user", "content": "q"}], "chosen": {"role": "user", "content": "a"},
                 "rejected": {"role": "assistant", "content": "b"}})",
             "ends with a message from \"user\"");
}

std::vector<std::string> read_file_of(const std::string& name, const std::string& contents) {
  const TempDir dir;
  const std::string path = (dir.path() / name).string();
  write_file(path, contents);
  std::vector<std::string> out;
  read_records(path, {}, [&](Record&& record) {
    out.push_back(record.where.substr(record.where.rfind('/') + 1) + " " + text_of(record));
  });
  return out;
}

TEST(Records, AreOneALineOrInAnArray) {
  const std::vector<std::string> wanted{"train.json:1 a[b]", "train.json:3 c[d]"};
  EXPECT_EQ(
      read_file_of("train.json", "{\"src\": \"a\", \"tgt\": \"b\"}\n\n{\"src\": \"c\", \"tgt\": \"d\"}\n"),
      wanted);
  EXPECT_EQ(
      read_file_of("train.json", "[{\"src\": \"a\",\n \"tgt\": \"b\"},\n{\"src\": \"c\", \"tgt\": \"d\"}]"),
      wanted);
}

TEST(Records, ABadLineIsNamed) {
  try {
    read_file_of("train.json", "{\"src\": \"a\", \"tgt\": \"b\"}\n{\"src\": \"a\"\n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("train.json:2"), std::string::npos) << error.what();
    EXPECT_EQ(error.kind(), ErrorKind::kData);
  }
}

}  // namespace
}  // namespace megalith::test
