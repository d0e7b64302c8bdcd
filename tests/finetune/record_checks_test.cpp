#include "libcore/finetune/record_checks.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "tests/finetune/read_record.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

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
             R"([{"src": "a", "tgt": "1", "id": 7, "empty": null, "kto_tag": true},
                 {"text": "b", "label": 0, "text_de": "c"},
                 {"src": "a", "tgt": "1", "chosen": "1", "rejected": "2"}])");
  std::string found;
  read_records(dir / "data.json", {.unread = [&](const std::string& member) { found += member + ";"; }},
               [](Record&&) {});
  EXPECT_EQ(found, "id;label;text_de;rejected;");
}

// A table put together from several has null where a row's own table had no such column. OpenAI's files have
// null for what a message does not have.
TEST(Records, MayHaveMembersThatHoldNothing) {
  for (const auto& [json, wanted] : {
           std::pair{R"({"messages": null, "src": null, "text": "t", "prompt": "", "label": null})", "[t]"},
           {R"({"messages": [], "instruction": "", "input": "i", "output": "o", "text": ""})", "\ni[o]"},
           {R"({"instruction": "", "output": "o", "text": "o"})", "[o]"},
           {R"({"text": "t", "tools": [], "chat_template_kwargs": {}, "system": ""})", "[t]"},
           {R"({"instruction": null, "input": null, "prompt": "q", "completion": null, "response": "r"})",
            "q[r]"},
           {R"({"conversations": null, "functions": null, "tools": null, "chosen": null, "messages": [
               {"role": "user", "content": "q", "function_call": null, "name": null},
               {"role": "assistant", "content": "a", "function_call": null, "weight": null}]})",
            "user:q;[assistant:a;]"},
       })
    EXPECT_EQ(text_of(read_one(json, {.style = PromptStyle::kPlain, .render = with_template().render})),
              wanted)
        << json;
}

// SlimOrca's weights are floating-point numbers, as is each number of some Parquet columns.
TEST(Records, MayHaveWeightsWithAPoint) {
  EXPECT_EQ(text_of(read_one(R"({"conversations": [{"from": "human", "value": "q", "weight": 0.0},
                                 {"from": "gpt", "value": "a", "weight": 1.0}]})",
                             with_template())),
            "user:q;[assistant:a;]");
}

// UltraFeedback's files have "messages" for those who learn answers, which is the chosen conversation.
TEST(Records, MayHaveTheirAnswerAsChosen) {
  const std::string question = R"({"role": "user", "content": "q"})";
  const auto with_chosen = [&](const char* chosen) {
    return concat(R"({"prompt": "q", "messages": [)", question,
                  R"(, {"role": "assistant", "content": "a"}], "chosen": )", chosen, ", \"rejected\": [",
                  question, R"(, {"role": "assistant", "content": "b"}]})");
  };
  for (const char* chosen : {R"([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}])",
                             R"({"from": "gpt", "value": "a"})", "\"a\""})
    EXPECT_EQ(text_of(read_one(with_chosen(chosen), with_template())), "user:q;[assistant:a;]") << chosen;
  for (const char* other : {R"([{"role": "assistant", "content": "b"}])", "\"b\"", R"({"role": "user"})"})
    expect_refused(with_chosen(other), "\"chosen\" is learned only with --dpo", with_template());
}

TEST(Records, MayRepeatTheirBeginningAsPrompt) {
  const auto with_prompt = [](const char* prompt) {
    return concat("{\"prompt\": ", prompt, R"(, "messages": [{"role": "user", "content": "q"},
                  {"role": "assistant", "content": "a"}]})");
  };
  EXPECT_EQ(text_of(read_one(with_prompt(R"([{"role": "user", "content": "q"}])"), with_template())),
            "user:q;[assistant:a;]");
  expect_refused(with_prompt(R"([{"role": "user", "content": "other"}])"),
                 "\"prompt\" is not how \"messages\" begins", with_template());
  expect_refused(with_prompt(R"({"role": "user"})"), "\"prompt\" is not a question", with_template());
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
           {"{\"chosen\": \"x\", " + turns + "}", "\"chosen\" is learned only with --dpo"},
           {R"({"prompt": "q", "chosen": "a", "rejected": "b"})", "\"chosen\" is learned only with --dpo"},
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

}  // namespace
}  // namespace megalith::test
