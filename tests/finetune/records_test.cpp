#include "libcore/finetune/records.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

/// Shows a record as one text, with its answers in brackets.
std::string text_of(const Record& record) {
  std::string out;
  for (const Segment& segment : record.segments)
    out += segment.answer ? "[" + segment.text + "]" : segment.text;
  return out;
}

Record read_one(const std::string& json, const RecordOptions& options = {}) {
  return record_of(Json::parse(json, "test"), options, "data.json:3");
}

/// Options whose render function replaces a template; it marks the segments by itself.
RecordOptions with_template() {
  return {.render = [](const Conversation& conversation, const std::string&) {
    std::vector<Segment> out;
    if (!conversation.tools.is_null()) out.push_back({conversation.tools.dump() + ";", false});
    for (size_t i = 0; i < conversation.messages.size(); ++i) {
      const Json& message = conversation.messages[i];
      const Json* const calls = message.find("tool_calls");
      out.push_back(
          {message["role"].as_string() + ":" + (calls ? calls->dump() : message["content"].as_string()) + ";",
           message["role"] == Json("assistant") && conversation.learned[i]});
    }
    return out;
  }};
}

void expect_refused(const std::string& json, const std::string& why, const RecordOptions& options = {}) {
  try {
    read_one(json, options);
    FAIL() << json;
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_TRUE(what.starts_with("data.json:3: ")) << what;
    EXPECT_NE(what.find(why), std::string::npos) << what;
  }
}

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

// tatsu-lab/alpaca has four columns, the last of which is stanford_alpaca/train.py's prompt and the answer.
TEST(Records, MayHaveTheirOwnRenderingAsText) {
  EXPECT_EQ(text_of(read_one(R"({"instruction": "i", "input": "", "output": " o\n", "text":
                                 "Below is an instruction.\n\n### Instruction:\ni\n\n### Response:\no"})",
                             {.style = PromptStyle::kPlain})),
            "i[ o\n]");
  EXPECT_EQ(text_of(read_one(R"({"src": "q", "tgt": "a", "text": "q a"})")), "q[a]");
  EXPECT_EQ(text_of(read_one(R"({"prompt": "q", "completion": "a", "text": ""})")), "q[a]");
  const std::string turns = R"("messages": [{"role": "system", "content": "s"},
    {"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "weight": 0},
    {"role": "user", "content": "r"}, {"role": "assistant", "content": "b"}])";
  EXPECT_EQ(text_of(read_one(R"({"text": "<u>q<u>r<a>b", )" + turns + "}", with_template())),
            "system:s;user:q;assistant:a;user:r;[assistant:b;]");
  for (const char* text : {"\"<u>q<a>a<u>r\"", "\"<u>q<a>b\"", "\"other\""})
    expect_refused(concat("{\"text\": ", text, ", ", turns, "}"),
                   "holds both \"messages\" and \"text\", which does not contain", with_template());
}

// What is dropped would be a passage, or another answer.
TEST(Records, WithAnotherTextAreRefused) {
  for (const auto& [json, why] : {
           std::pair{
               R"({"instruction": "i", "output": "o", "text": "all i"})",
               "holds both \"instruction\" and \"text\", which does not contain \"o\"; leave one of them "
               "out"},
           {R"({"instruction": "who?", "output": "Ann", "text": "Ann and Bob met."})",
            "\"instruction\" and \"text\", which does not contain \"who?\""},
           {R"({"instruction": "i", "input": "passage", "output": "o", "text": "i o"})",
            "does not contain \"passage\""},
           {R"({"prompt": "q", "completion": "a", "text": "q"})",
            "holds both \"prompt\" and \"text\", which does not contain \"a\""},
           {R"({"prompt": "q", "response": "a", "text": "q"})", "which does not contain \"a\""},
           {R"({"src": "q", "tgt": "a", "text": "a"})", "holds both \"src\" and \"text\""},
           {R"({"src": "q", "tgt": "a", "text": 5})", "\"text\" is 5; wanted a text"},
           {R"({"prompt": [{"role": "user", "content": "q"}], "completion": "a", "text": "t"})",
            "holds both \"prompt\" and \"text\""},
           {R"({"text": "t", "completion": "c"})", "holds both \"text\" and \"completion\""},
           {R"({"text": "t", "output": "c"})", "holds both \"text\" and \"output\""},
           {R"({"text": "t", "system": "s"})",
            "\"system\" cannot be used with \"text\"; give \"messages\" instead"},
           {R"({"text": "t", "tools": [{}]})", "\"tools\" cannot be used with \"text\""},
           {R"({"text": "t", "chat_template_kwargs": {"x": 1}})",
            "\"chat_template_kwargs\" cannot be used with \"text\""},
           {R"({"text": "t", "input": "i"})", "\"input\" cannot be used with \"text\"; give \"instruction\""},
       })
    expect_refused(json, why, with_template());
}

TEST(Records, NameWhatNoFormHas) {
  const TempDir dir;
  write_file(dir / "data.json",
             R"([{"src": "a", "tgt": "1", "id": 7}, {"text": "b", "label": 0, "text_de": "c"}])");
  std::string found;
  read_records(dir / "data.json", {.unread = [&](const std::string& member) { found += member + ";"; }},
               [](Record&&) {});
  EXPECT_EQ(found, "id;text_de;");
}

TEST(Records, AreRefusedRatherThanReadInPart) {
  const std::string turns =
      R"("messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])";
  for (const auto& [json, why] : {
           std::pair<std::string, const char*>{"{\"src\": \"x\", \"tgt\": \"y\", " + turns + "}",
                                               "holds both \"messages\" and \"tgt\""},
           {"{\"conversations\": [{\"from\": \"gpt\", \"value\": \"a\"}], " + turns + "}",
            "holds both \"messages\" and \"conversations\""},
           {"{\"completion\": \"y\", " + turns + "}", "holds both \"messages\" and \"completion\""},
           {"{\"prompt\": \"other\", " + turns + "}", "\"prompt\" is not a question in \"messages\""},
           {"{\"tools\": {\"a\": 1}, " + turns + "}", "\"tools\" is {\"a\": 1}; wanted a list of tools"},
           {R"({"system": "s", "messages": [{"role": "system", "content": "t"},
               {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]})",
            "holds \"system\" and begins with another system message"},
           {R"({"messages": [{"role": "user", "content": "q"},
               {"role": "assistant", "content": "a", "weight": 0.5}]})",
            "\"weight\" is 0.5; wanted 1, or 0 for an answer not to learn"},
           {R"({"messages": [{"role": "user", "content": "q"},
               {"role": "assistant", "content": "a", "weight": 0}]})",
            "holds no answer of the assistant to learn"},
           {R"({"src": "x", )" + turns + "}", "holds both \"messages\" and \"src\""},
           {R"({"instruction": "x", )" + turns + "}", "holds both \"messages\" and \"instruction\""},
           {R"({"src": "q", "tgt": "a", "instruction": "i"})", "holds both \"src\" and \"instruction\""},
           {R"({"src": "q", "tgt": "a", "prompt": "p"})", "holds both \"src\" and \"prompt\""},
           {R"({"instruction": "q", "output": "a", "prompt": "p"})",
            "holds both \"instruction\" and \"prompt\""},
           {R"({"prompt": "q", "completion": "a", "history": [["x", "y"]]})", "\"history\" is not read"},
           {"{\"history\": [[\"x\", \"y\"]], " + turns + "}", "\"history\" is not read"},
           {R"({"prompt": "q", "completion": "a", "label": false})", "\"label\" is false"},
           {"{\"images\": [\"a.png\"], " + turns + "}", "\"images\": only texts are learned"},
           {"{\"input\": \"x\", " + turns + "}", "\"input\" cannot be used with \"messages\""},
           {"{\"chosen\": \"x\", " + turns + "}", "\"chosen\" is learned with --dpo alone"},
           {R"({"prompt": "q", "chosen": "a", "rejected": "b"})", "\"chosen\" is learned with --dpo alone"},
           {"{\"label\": false, " + turns + "}", "\"label\" is false"},
           {"{\"kto_tag\": false, " + turns + "}", "\"kto_tag\" is false"},
           {R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a",
               "function_call": {"name": "f", "arguments": "{}"}}]})",
            "\"function_call\" of a message is not read; give \"tool_calls\""},
           {R"({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": null,
               "function_call": {"name": "f", "arguments": "{}"}}]})",
            "\"function_call\" of a message is not read"},
           {"{\"functions\": [{}], " + turns + "}", "\"functions\" are not read; give \"tools\""},
           {"{\"chat_template_kwargs\": 1, " + turns + "}",
            "\"chat_template_kwargs\" is 1; wanted an object"},
           {"{\"chat_template_kwargs\": {\"tools\": []}, " + turns + "}",
            "\"chat_template_kwargs\" holds \"tools\""},
           {R"({"prompt": "q", "completion": "a", "chat_template_kwargs": {"x": 1}})",
            "\"chat_template_kwargs\" cannot be used with \"prompt\""},
           {R"({"src": "q", "tgt": "a", "system": "s"})", "\"system\" cannot be used with \"src\""},
           {R"({"prompt": "q", "completion": "a", "tools": [1]})",
            "\"tools\" cannot be used with \"prompt\""},
       })
    expect_refused(json, why, with_template());
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
