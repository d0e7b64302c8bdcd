// Conversations of megalith-generate --chat without a file. Each answer must be the one that --chat FILE
// gives with the same history.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"
#include "tests/support/json_log.h"
#include "tests/support/terminal.h"

namespace megalith::test {
namespace {

class ChatApp : public testing::Test {
 protected:
  ChatApp() {
    std::filesystem::copy(test_data("parity/goldens/generate-llama"), dir_ / "model");
    std::filesystem::copy(test_data("text/goldens/trained/tokenizer.json"), dir_ / "model");
    write("model/chat_template.jinja",
          "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}"
          "{% if add_generation_prompt %}assistant:{% endif %}");
  }
  void write(const std::string& name, const std::string& text) {
    AtomicFile file(dir_ / name);
    file.write(text);
    file.commit();
  }
  /// Gives the model so many positions that an answer takes longer than any test waits.
  void make_endless() {
    std::string config = read_file(dir_ / "model/config.json");
    const std::string few = "\"max_position_embeddings\": 64";
    config.replace(config.find(few), few.size(), "\"max_position_embeddings\": 300000");
    write("model/config.json", config);
  }
  std::string chat(const std::string& options) const {
    return app("generate") + " --model " + (dir_ / "model") + " --chat " + options;
  }
  CommandResult talk(const std::string& lines, const std::string& options) const {
    return run_command("printf '" + lines + "' | " + chat(options));
  }
  /// What --chat FILE gives after one question and its answer.
  Json alone(const std::string& question, const std::string& answer, const std::string& next) {
    const auto message = [](const char* role, const std::string& text) {
      return Json(Json::Object{{"role", role}, {"content", text}});
    };
    Json history = Json::array();
    history.push_back(message("user", question));
    history.push_back(message("assistant", answer));
    history.push_back(message("user", next));
    write("history.json", history.dump());
    const CommandResult result = run_command(chat((dir_ / "history.json") + " -n 6 --json"));
    EXPECT_EQ(result.code, 0) << result.err;
    return Json::parse(result.out, "stdout");
  }
  TempDir dir_;
};

TEST_F(ChatApp, AnswersEachLineWithItsHistory) {
  make_endless();  // three turns are more than 64 positions
  const CommandResult result = talk("The \\n\\nif\\r\\n/system be brief\\nend", "-n 6 --json");
  const std::vector<Json> turns = json_lines(result);
  ASSERT_EQ(turns.size(), 3U) << "a blank line and a command have no answer";
  EXPECT_EQ(turns[0]["prompt"].as_string(), "user:The \nassistant:");
  EXPECT_EQ(turns[1]["prompt"].as_string(),
            turns[0]["prompt"].as_string() + turns[0]["text"].as_string() + "\nuser:if\nassistant:");
  EXPECT_EQ(turns[2]["prompt"].as_string(), "system:be brief\n" + turns[1]["prompt"].as_string() +
                                                turns[1]["text"].as_string() + "\nuser:end\nassistant:");
  EXPECT_EQ(alone("The ", turns[0]["text"].as_string(), "if")["tokens"], turns[1]["tokens"]);
  EXPECT_EQ(talk("The \\n\\nif\\n/system be brief\\nend", "-n 6").out,
            concat(turns[0]["text"].as_string(), "\n", turns[1]["text"].as_string(), "\n",
                   turns[2]["text"].as_string(), "\n"));
}

// As templates do that drop the reasoning of earlier answers.
TEST_F(ChatApp, ObeysATemplateThatChangesEarlierAnswers) {
  write("model/chat_template.jinja",
        "{% for m in messages %}{{ m.role }}:"
        "{% if m.role == 'assistant' %}{{ m.content[:1] }}{% else %}{{ m.content }}{% endif %}\n"
        "{% endfor %}assistant:");
  const std::vector<Json> turns = json_lines(talk("The \\nif\\n", "-n 6 --json"));
  ASSERT_EQ(turns.size(), 2U);
  const std::string answer = turns[0]["text"].as_string();
  const Json again = alone("The ", answer, "if");
  EXPECT_EQ(again["prompt"], turns[1]["prompt"]);
  EXPECT_EQ(again["tokens"], turns[1]["tokens"]);
  EXPECT_EQ(turns[1]["prompt"].as_string().find(answer), std::string::npos);
}

TEST_F(ChatApp, ReadsOnlyWhatATurnAdds) {
  const CommandResult result = talk("The \\nif\\nelse\\n", "-n 4 --json");
  const std::vector<Json> turns = json_lines(result);
  ASSERT_EQ(turns.size(), 3U);
  const size_t at = result.err.find("prompt: ");
  ASSERT_NE(at, std::string::npos) << result.err;
  const int64_t read = std::stoll(result.err.substr(at + 8));
  // Each prompt begins with the one before it. Of an answer, the last token was not read when it was made,
  // and a text may have other tokens than those that made it.
  EXPECT_LE(read, turns[2]["prompt_tokens"].as_int() + 2);
  EXPECT_GE(read, turns[2]["prompt_tokens"].as_int() - 2 * 4);
}

TEST_F(ChatApp, AnswersTheSameQuestionAnewAfterAReset) {
  const std::vector<Json> greedy = json_lines(talk("The \\n/reset\\nThe \\n", "-n 4 --json"));
  ASSERT_EQ(greedy.size(), 2U);
  EXPECT_EQ(greedy[0]["text"], greedy[1]["text"]);
  const std::string drawn = "-n 8 --json --temperature 1.5 --seed 3";
  const std::vector<Json> sampled = json_lines(talk("The \\n/reset\\nThe \\n", drawn));
  ASSERT_EQ(sampled.size(), 2U);
  EXPECT_EQ(sampled[0]["prompt"], sampled[1]["prompt"]);
  EXPECT_NE(sampled[0]["tokens"], sampled[1]["tokens"]);
  EXPECT_EQ(json_lines(talk("The \\n/reset\\nThe \\n", drawn)), sampled);
}

TEST_F(ChatApp, ForgetsTheOldestTurnsWhenTheContextIsFull) {
  std::string lines;
  for (int i = 0; i < 12; ++i) lines += "a word\\n";
  const CommandResult result = talk(lines, "-n 4 --json");
  const std::vector<Json> turns = json_lines(result);  // the model has 64 positions
  EXPECT_EQ(turns.size(), 12U);
  EXPECT_NE(result.err.find("the history no longer fits into 64 tokens; forgot the oldest "),
            std::string::npos)
      << result.err;
  for (const Json& turn : turns) EXPECT_LE(turn["prompt_tokens"].as_int(), 61);
  EXPECT_TRUE(turns.back()["prompt"].as_string().ends_with("user:a word\nassistant:"));
  const CommandResult long_question = talk(std::string(400, 'a') + "\\n", "-n 4");
  EXPECT_EQ(long_question.code, 64) << long_question.err;
  EXPECT_NE(long_question.err.find("of which at most 64 fit; shorten it"), std::string::npos)
      << long_question.err;
  const CommandResult limited = talk("The \\n", "-n 4 --max-length 3");
  EXPECT_EQ(limited.code, 64) << limited.err;
  EXPECT_NE(limited.err.find("of which at most 2 fit"), std::string::npos) << limited.err;
}

TEST_F(ChatApp, RefusesWhatItCannotAnswer) {
  const CommandResult unknown = talk("/rest\\n", "");
  EXPECT_EQ(unknown.code, 64);
  EXPECT_NE(unknown.err.find("unknown command \"/rest\"; /help lists them"), std::string::npos)
      << unknown.err;
  EXPECT_EQ(json_lines(talk(" /rest\\n", "-n 1 --json"))[0]["prompt"].as_string(), "user:/rest\nassistant:");
  EXPECT_EQ(talk("\\377\\n", "").code, 65);
  EXPECT_EQ(json_lines(talk("The \\n/exit\\nif\\n", "-n 1 --json")).size(), 1U);
  EXPECT_EQ(talk("", "").code, 0);
  EXPECT_EQ(talk("", "-p x").code, 64);
  const CommandResult several = talk("", "--num-return-sequences 2 --temperature 1");
  EXPECT_EQ(several.code, 64);
  EXPECT_NE(several.err.find("one answer to a question"), std::string::npos) << several.err;
  std::filesystem::remove(dir_ / "model/chat_template.jinja");
  const CommandResult none = talk("The \\n", "");
  EXPECT_EQ(none.code, 64);
  EXPECT_NE(none.err.find("no chat template"), std::string::npos) << none.err;
}

TEST_F(ChatApp, TalksInATerminal) {
  make_endless();
  const std::string first = json_lines(talk("The \\n", "-n 8 --ignore-eos --json"))[0]["text"].as_string();
  ASSERT_EQ(first.find('\n'), std::string::npos) << first;
  TerminalCommand run("exec " + chat("-n 200000 --ignore-eos"), 80);
  EXPECT_TRUE(run.wait_for("greedy: each token is the likeliest one"));
  EXPECT_TRUE(run.wait_for("/help lists commands, Ctrl-D ends"));
  EXPECT_TRUE(run.wait_for("> "));
  run.type("The \n");
  EXPECT_TRUE(run.wait_for("The \r\n" + first)) << "tokens are written as they come: " << run.rest();
  run.type("\x03");
  EXPECT_TRUE(run.wait_for("\r\n> ")) << "Ctrl-C ends the answer";
  run.type("/help\n");
  EXPECT_TRUE(run.wait_for("/system TEXT  give the model"));
  run.type("/nonsense\n");
  EXPECT_TRUE(run.wait_for("unknown command \"/nonsense\""));
  run.type("/reset\nThe \n");
  EXPECT_TRUE(run.wait_for("The \r\n"));
  EXPECT_TRUE(run.wait_for(first));
  run.type("\x03");
  EXPECT_TRUE(run.wait_for("\r\n> "));
  run.type("\x03");
  EXPECT_TRUE(run.wait_for("Ctrl-C again or Ctrl-D ends"));
  EXPECT_TRUE(run.wait_for("> "));
  run.type("\x04");
  const CommandResult result = run.finish();
  EXPECT_EQ(result.code, 0) << result.out;
  EXPECT_NE(result.out.find("generated "), std::string::npos) << result.out;
}

TEST_F(ChatApp, EndsAtASecondInterrupt) {
  TerminalCommand run("exec " + chat("-n 4"), 80);
  ASSERT_TRUE(run.wait_for("> "));
  run.type("\x03");
  ASSERT_TRUE(run.wait_for("Ctrl-C again or Ctrl-D ends"));
  run.type("\x03");
  EXPECT_EQ(run.finish().code, 130);
  TerminalCommand left("exec " + chat("-n 4"), 80);
  ASSERT_TRUE(left.wait_for("> "));
  left.type("/exit\n");
  EXPECT_EQ(left.finish().code, 0);
}

TEST_F(ChatApp, SaysInATerminalWhatWasWrongAndContinues) {
  TerminalCommand run("exec " + chat("-n 4"), 200);
  ASSERT_TRUE(run.wait_for("> "));
  run.type(std::string(400, 'a') + "\n");
  EXPECT_TRUE(run.wait_for("of which at most 64 fit; shorten it"));
  EXPECT_TRUE(run.wait_for("> "));
  run.type("The \n");
  EXPECT_TRUE(run.wait_for("(the answer was ended after 4 tokens)"));
  run.type("\x04");
  EXPECT_EQ(run.finish().code, 0);
}

}  // namespace
}  // namespace megalith::test
