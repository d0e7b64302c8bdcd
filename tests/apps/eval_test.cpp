// The expected figures and log-likelihoods are lm_eval's: tools/golden/make_evaluate_goldens.py.
#include <cmath>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"
#include "tests/support/json_log.h"
#include "tests/support/terminal.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class EvalApp : public testing::Test {
 protected:
  EvalApp() {
    make_model("gpt2");
    fs::copy(test_data("evaluate/goldens"), dir_ / "tasks");
  }

  /// The model of a run of the goldens, as the script makes it.
  void make_model(const std::string& kind) {
    const std::string folder = dir_ / kind;
    fs::copy(test_data("parity/goldens/generate-") + kind.substr(0, kind.find('-')), folder);
    fs::copy(test_data("text/goldens/trained/tokenizer.json"), folder);
    if (kind == "gpt2") return;
    Json config = Json::load(folder + "/config.json");
    config.set("max_position_embeddings", 512);
    write_file(folder + "/config.json", config.dump());
    if (kind == "llama") return;
    Json parts = Json::load(folder + "/tokenizer.json");
    const std::string end = "<|endoftext|>";
    Json ids = Json::array();
    for (const Json& token : parts["added_tokens"].as_array())
      if (token["content"] == Json(end)) ids.push_back(token["id"]);
    const Json text = Json::parse(R"({"Sequence": {"id": "A", "type_id": 0}})", "text");
    const Json special = Json::parse(R"({"SpecialToken": {"id": "<|endoftext|>", "type_id": 0}})", "special");
    const Json tokens =
        Json::Object{{end, Json::Object{{"id", end}, {"ids", ids}, {"tokens", Json::Array{end}}}}};
    parts.set("post_processor", Json::Object{{"type", "TemplateProcessing"},
                                             {"single", Json::Array{special, text}},
                                             {"pair", Json::Array{text, text}},
                                             {"special_tokens", tokens}});
    write_file(folder + "/tokenizer.json", parts.dump());
    write_file(folder + "/tokenizer_config.json", R"({"bos_token": "<|endoftext|>"})");
  }

  CommandResult run(const std::string& options) {
    return run_command("cd " + dir_.path().string() + " && " + app("eval") + " " + options);
  }
  Json results() { return Json::load(dir_ / "results.json"); }
  std::vector<Json> samples() { return json_lines(read_file(dir_ / "samples.jsonl"), "samples.jsonl"); }

  static constexpr const char* kTasks =
      " --tasks hellaswag=tasks/hellaswag.jsonl,arc_easy=tasks/arc.jsonl,piqa=tasks/piqa.jsonl,"
      "lambada=tasks/lambada.jsonl,tasks/own.jsonl";
  static constexpr const char* kExamples =
      " --fewshot-data hellaswag=tasks/hellaswag-train.jsonl,arc_easy=tasks/arc-train.jsonl,"
      "piqa=tasks/piqa-train.jsonl";
  static constexpr const char* kOut = " --json results.json --samples samples.jsonl";
  TempDir dir_;
};

/// A golden of the log-likelihoods of an item, beside ours.
void expect_item(const Json& ours, const Json& golden, const std::string& what) {
  const Json::Array &logs = ours["loglikelihoods"].as_array(), &wanted = golden["logs"].as_array();
  ASSERT_EQ(logs.size(), wanted.size()) << what;
  for (size_t i = 0; i < logs.size(); ++i)
    // lm_eval adds up in fp32, which rounds the sums of long texts.
    EXPECT_NEAR(logs[i].as_double(), wanted[i].as_double(), 1e-4 + 1.2e-7 * std::abs(wanted[i].as_double()))
        << what << ", " << i;
  if (golden.find("greedy") == nullptr) return;
  EXPECT_EQ(ours["context"], golden["context"]) << what;
  EXPECT_EQ(ours["greedy"], golden["greedy"]) << what;
  for (const char* const metric : {"acc", "acc_norm"}) {
    if (golden.find(metric) == nullptr) continue;
    EXPECT_EQ(ours[metric].as_double(), golden[metric].as_double()) << what << ", " << metric;
  }
}

// Without examples and with two, with contexts that are cut, texts in windows, and a tokenizer that puts a
// token before each text.
TEST_F(EvalApp, GivesTheFiguresOfLmEval) {
  const Json goldens = Json::load(test_data("evaluate/goldens/results.json"));
  std::string done;
  std::vector<Json> found;
  for (const Json& golden : goldens["runs"].as_array()) {
    const std::string kind = golden["model"].as_string(), name = golden["task"].as_string();
    const int64_t shots = golden["shots"].as_int();
    if (const std::string one = concat(kind, " ", shots); one != done) {
      done = one;
      if (!fs::exists(dir_ / kind)) make_model(kind);
      const CommandResult result = run(concat("--model ", kind, " --num-fewshot ", shots, kTasks,
                                              shots > 0 ? kExamples : ",tasks/texts.jsonl", kOut));
      ASSERT_EQ(result.code, 0) << result.err;
      EXPECT_EQ(result.err.find("beginnings are left out") != std::string::npos, kind == "gpt2")
          << result.err;
      found = samples();
    }
    const Json results = this->results();
    const std::string what = concat(done, " ", name);
    for (const auto& [metric, value] : golden["figures"].as_object()) {
      if (!value.is_number()) continue;
      const double ours = results["results"][name][metric + ",none"].as_double();
      EXPECT_NEAR(ours, value.as_double(), 1e-3 * std::abs(value.as_double())) << what << " " << metric;
    }
    EXPECT_EQ(results["n-shot"][name].as_int(), shots) << what;
    size_t next = 0;
    for (const Json& sample : found)
      if (sample["task"] == Json(name)) {
        ASSERT_LT(next, golden["items"].as_array().size()) << what;
        expect_item(sample, golden["items"].as_array()[next], concat(what, ", item ", next));
        ++next;
      }
    EXPECT_EQ(next, golden["items"].as_array().size()) << what;
  }
}

TEST_F(EvalApp, PrintsATable) {
  const CommandResult result = run("--model gpt2 --tasks piqa=tasks/piqa.jsonl tasks/texts.jsonl");
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<std::string> lines = split(result.out, '\n');
  ASSERT_EQ(lines.size(), 7U) << result.out;
  EXPECT_TRUE(lines[0].starts_with("task ")) << result.out;
  EXPECT_TRUE(lines[1].starts_with("piqa   ")) << result.out;
  EXPECT_NE(lines[1].find("acc "), std::string::npos) << result.out;
  EXPECT_TRUE(lines[1].ends_with("0.6000  0.2449")) << result.out;
  EXPECT_NE(lines[3].find("bits_per_byte"), std::string::npos) << result.out;
  EXPECT_TRUE(lines[3].ends_with("9.8462     N/A")) << result.out;
  EXPECT_NE(lines[5].find("3.3825E+16"), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("shared beginnings once"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("ETA"), std::string::npos) << "no progress in a pipe: " << result.err;
  const CommandResult shown =
      run_on_terminal("cd " + dir_.path().string() + " && " + app("eval") +
                          " --model gpt2 --tasks hellaswag=tasks/hellaswag.jsonl --batch-size 1 --bf16",
                      100);
  EXPECT_EQ(shown.code, 0) << shown.out;
  EXPECT_NE(shown.out.find("loading gpt2"), std::string::npos) << shown.out;
}

/// Expects the log-likelihoods of the first of `all`.
void expect_near(const std::vector<Json>& some, const std::vector<Json>& all, const std::string& what) {
  for (size_t i = 0; i < some.size(); ++i)
    for (size_t j = 0; j < all[i]["loglikelihoods"].as_array().size(); ++j)
      EXPECT_NEAR(some[i]["loglikelihoods"].as_array()[j].as_double(),
                  all[i]["loglikelihoods"].as_array()[j].as_double(), 1e-4)
          << what << " " << i;
}

TEST_F(EvalApp, GivesTheSameWhateverTheBatch) {
  const std::string command = concat("--model gpt2", kTasks, ",tasks/texts.jsonl --num-fewshot 1", kOut);
  ASSERT_EQ(run(command).code, 0);
  const std::vector<Json> all = samples();
  for (const char* const batch : {" --batch-size 1", " --batch-size 3 --threads 1", " --batch-size auto"}) {
    ASSERT_EQ(run(command + batch).code, 0);
    const std::vector<Json> some = samples();
    ASSERT_EQ(some.size(), all.size());
    expect_near(some, all, batch);
  }
}

TEST_F(EvalApp, ObeysLimitSeedLengthAndBf16) {
  const std::string command = std::string("--model gpt2 --num-fewshot 1 --tasks tasks/own.jsonl") + kOut;
  ASSERT_EQ(run(command).code, 0);
  const std::vector<Json> all = samples();
  ASSERT_EQ(run(command + " --limit 2").code, 0);
  const std::vector<Json> two = samples();  // in a smaller pass, which may round in another order
  ASSERT_EQ(two.size(), 2U);
  expect_near(two, all, "--limit 2");
  for (size_t i = 0; i < two.size(); ++i) {
    EXPECT_EQ(two[i]["context"], all[i]["context"]);
    EXPECT_EQ(two[i]["acc"], all[i]["acc"]);
  }
  EXPECT_EQ(results()["n-samples"]["own"].dump(), R"({"original": 6, "effective": 2})");
  ASSERT_EQ(run(command + " --seed 1").code, 0);
  EXPECT_NE(samples(), all);
  const std::string texts = std::string("--model gpt2 --tasks tasks/texts.jsonl") + kOut;
  ASSERT_EQ(run(texts).code, 0);
  const double whole = results()["results"]["texts"]["bits_per_byte,none"].as_double();
  ASSERT_EQ(run(texts + " --max-length 8").code, 0);
  EXPECT_NE(results()["results"]["texts"]["bits_per_byte,none"].as_double(), whole);
  const CommandResult narrow = run(texts + " --bf16");
  ASSERT_EQ(narrow.code, 0) << narrow.err;
  EXPECT_NE(narrow.err.find("of weights (bf16)"), std::string::npos) << narrow.err;
  const double rounded = results()["results"]["texts"]["bits_per_byte,none"].as_double();
  EXPECT_NE(rounded, whole);
  EXPECT_NEAR(rounded, whole, 0.02 * whole);
}

TEST_F(EvalApp, RunsAdapters) {
  for (const char* const kind : {"gpt2-lora", "gpt2-prefix"}) {
    const CommandResult tuned =
        run(concat("--model gpt2 --tasks tasks/own.jsonl --samples samples.jsonl --adapter ",
                   test_data(concat("parity/goldens/adapters/", kind))));
    ASSERT_EQ(tuned.code, 0) << kind << ": " << tuned.err;
    const std::vector<Json> with = samples();
    ASSERT_EQ(run("--model gpt2 --tasks tasks/own.jsonl --samples samples.jsonl").code, 0);
    EXPECT_NE(samples(), with) << kind;
  }
}

TEST_F(EvalApp, RefusesWhatItCannotDo) {
  struct Case {
    std::string options;
    int code;
    const char* said;
  };
  const std::string own = "--model gpt2 --tasks tasks/own.jsonl ";
  for (const Case& one : {
           Case{"--model gpt2", 64, "--tasks is missing"},
           Case{"--model gpt2 --tasks hellaswag", 64, "hellaswag=FILE: tasks are files that you have"},
           Case{"--model none --tasks tasks/own.jsonl", 66, "none"},
           Case{"--model gpt2 --tasks none.jsonl", 66, "none.jsonl"},
           Case{"--model gpt2 --tasks hellaswag=tasks/arc.jsonl", 65,
                "tasks/arc.jsonl:1: has no \"activity_label\""},
           Case{"--model gpt2 --tasks tasks/texts.jsonl --num-fewshot 2", 64,
                "before which there are no examples"},
           Case{own + "--num-fewshot 6", 64,
                "--num-fewshot 6 needs 7 items to draw from, tasks/own.jsonl has 6"},
           Case{own + "--num-fewshot 1 --fewshot-data own=tasks/texts.jsonl", 65,
                "wanted examples with choices"},
           Case{own + "--max-length 65", 64, "--max-length 65: the model 64 positions; give less"},
           Case{own + "--max-length 2", 65, "tasks/own.jsonl: item 1"},
           Case{own + "--limit -1", 64, "--limit"},
           Case{own + "--batch-size 0", 64, "--batch-size"},
           Case{own + "--json tasks/own.jsonl", 64, "--json"},
           Case{own + "--json a --samples a", 64, "--samples"},
           Case{own + "--json none/results.json", 74, "cannot create: No such file or directory"},
       }) {
    const CommandResult result = run(one.options);
    EXPECT_EQ(result.code, one.code) << one.options << ": " << result.err;
    EXPECT_NE(result.err.find(one.said), std::string::npos) << one.options << ": " << result.err;
    EXPECT_EQ(result.out, "") << one.options;
  }
  fs::remove(dir_ / "gpt2/tokenizer.json");
  EXPECT_NE(run(own).err.find("without a tokenizer"), std::string::npos);
}

// Runs the commands of docs/evaluate.md in a folder with the files that they name.
TEST_F(EvalApp, RunsTheCommandsOfItsPage) {
  fs::rename(dir_ / "gpt2", dir_ / "hf");
  fs::copy(test_data("parity/goldens/adapters/gpt2-lora"), dir_ / "lora");
  for (const auto& [from, to] : {std::pair{"hellaswag", "hellaswag_val"},
                                 {"arc", "ARC-Easy-Test"},
                                 {"arc-train", "ARC-Easy-Train"},
                                 {"piqa", "valid"},
                                 {"lambada", "lambada_test"},
                                 {"own", "questions"},
                                 {"texts", "texts"}})
    fs::copy(dir_ / concat("tasks/", from, ".jsonl"), dir_ / concat(to, ".jsonl"));
  fs::copy(dir_ / "tasks/piqa-labels.lst", dir_ / "valid-labels.lst");
  std::vector<std::string> commands = doc_commands("evaluate.md");
  std::erase_if(commands, [](const std::string& command) { return !command.starts_with("megalith-eval "); });
  for (const std::string& command : commands) {
    const CommandResult result = run_command(
        concat("cd ", dir_.path().string(), " && PATH=", MEGALITH_BINARY_DIR, "/bin:$PATH; ", command));
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
    EXPECT_TRUE(result.out.starts_with("task ")) << command;
  }
  EXPECT_GE(commands.size(), 4U);
}

}  // namespace
}  // namespace megalith::test
