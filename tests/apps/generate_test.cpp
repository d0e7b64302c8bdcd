// The expected texts come from the pipeline of transformers: tools/golden/make_generate_goldens.py.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/convert/targets/megalith.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"
#include "tests/support/json_log.h"
#include "tests/support/terminal.h"

namespace megalith::test {
namespace {

class GenerateApp : public testing::TestWithParam<const char*> {
 protected:
  GenerateApp() {
    std::filesystem::copy(test_data("parity/goldens/") + GetParam(), dir_ / "model");
    std::filesystem::copy(test_data("text/goldens/trained/tokenizer.json"), dir_ / "model");
  }
  /// Runs megalith-generate to continue `text`, which must not contain single quotes.
  CommandResult generate(const std::string& model, const std::string& text, const std::string& options) {
    return run_command(app("generate") + " --model " + model + " --prompt '" + text + "' " + options);
  }
  void expect_goldens(const std::string& model) {
    const Json goldens = Json::load(test_data("parity/goldens/") + GetParam() + ".json");
    for (size_t i = 0; i < goldens["prompts"].as_array().size(); ++i) {
      const CommandResult result = generate(model, goldens["prompts"].as_array()[i].as_string(),
                                            "--max-new-tokens 24 --temperature 0");
      EXPECT_EQ(result.code, 0) << result.err;
      EXPECT_EQ(result.out, goldens["texts"].as_array()[i].as_string() + "\n");
      EXPECT_NE(result.err.find("tokens/s"), std::string::npos) << result.err;
    }
  }
  TempDir dir_;
};
INSTANTIATE_TEST_SUITE_P(Families, GenerateApp,
                         testing::Values("generate-gpt2", "generate-llama", "generate-qwen3", "generate-phi4",
                                         "generate-starcoder2", "generate-gpt_neox", "generate-falcon_7b",
                                         "generate-olmo2"),
                         [](const auto& instance) { return std::string(instance.param).substr(9); });

TEST_P(GenerateApp, GreedyTextIsTransformers) {
  expect_goldens(dir_ / "model");
}

TEST_P(GenerateApp, PrintsTheBestTextsOfABeamSearch) {
  const std::string text = "The first of all";
  const auto json = [&](const std::string& options) {
    return json_lines(generate(dir_ / "model", text, "--json --ignore-eos --max-new-tokens 6 " + options));
  };
  const std::vector<Json> both = json("--num-beams 4 --num-return-sequences 2");
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[1]["index"].as_int(), 1);
  EXPECT_NE(both[0]["tokens"].dump(), both[1]["tokens"].dump());
  EXPECT_EQ(both[0]["tokens"].as_array().size(), 6U);
  const std::vector<Json> best = json("--num-beams 4");
  ASSERT_EQ(best.size(), 1U);
  EXPECT_EQ(best[0]["tokens"].dump(), both[0]["tokens"].dump());
  // A stop text ends a found text, too.
  const std::string whole = best[0]["text"].as_string();
  size_t last = whole.size() - 1;  // where the last character begins
  while ((static_cast<unsigned char>(whole[last]) & 0xC0) == 0x80) --last;
  const std::string stop = whole.substr(last);
  const std::vector<Json> cut = json("--num-beams 4 --stop '" + stop + "'");
  EXPECT_EQ(cut[0]["text"].as_string(), whole.substr(0, whole.find(stop)));
  EXPECT_EQ(cut[0]["finish_reason"].as_string(), "stop");
  for (const auto& [options, part] :
       {std::pair{"--temperature 1", "--temperature contradict each other"},
        std::pair{"--num-return-sequences 5", "--num-return-sequences 5 is more than --num-beams 4"}}) {
    const CommandResult refused = generate(dir_ / "model", text, std::string("--num-beams 4 ") + options);
    EXPECT_EQ(refused.code, 64);
    EXPECT_NE(refused.err.find(part), std::string::npos) << refused.err;
  }
}

TEST_P(GenerateApp, ReadsOurCheckpoints) {
  export_checkpoint({.source = ModelSource(dir_ / "model"), .tokenizer_folder = dir_ / "model"},
                    dir_ / "ours");
  expect_goldens(dir_ / "ours");
}

TEST_P(GenerateApp, HasShortNames) {
  const std::string model = app("generate") + " --model " + (dir_ / "model");
  const CommandResult result = run_command(model + " -p 'The ' a -n 5");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, run_command(model + " --prompt 'The ' a --max-new-tokens 5").out);
}

TEST_P(GenerateApp, SaysOnATerminalThatItIsGreedy) {
  const std::string run = app("generate") + " --model " + (dir_ / "model") + " -p 'The ' -n 2 ";
  const std::string words = "greedy: each token is the likeliest one; --temperature 0.8 draws it";
  const std::string shown = run_on_terminal(run, 100).out;
  const size_t at = shown.find(words);
  ASSERT_NE(at, std::string::npos) << shown;
  EXPECT_EQ(shown.find("greedy", at + 1), std::string::npos) << shown;
  for (const char* chosen : {"--temperature 0", "--temperature 0.7", "--top-k 5", "--top-p 0.9",
                             "--repetition-penalty 1.1", "--seed 7", "--quiet"})
    EXPECT_EQ(run_on_terminal(run + chosen, 100).out.find("greedy"), std::string::npos) << chosen;
  EXPECT_EQ(run_command(run).all().find("greedy"), std::string::npos);
}

TEST_P(GenerateApp, SaysThatNothingIsSampled) {
  const std::string run = app("generate") + " --model " + (dir_ / "model") + " -p 'The ' -n 2 ";
  for (const auto& [options, named] : {std::pair("--top-k 5", "warning: --top-k: no effect"),
                                       {"--top-p 0.9 --top-k 5", "warning: --top-k, --top-p: no effect"},
                                       {"--min-p 0.1 --temperature 0", "warning: --min-p: no effect"}}) {
    const CommandResult result = run_command(run + options);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_NE(result.err.find(named), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("give --temperature 1 to draw tokens"), std::string::npos) << result.err;
  }
  for (const auto& [options, named] :
       {std::pair("--length-penalty 2", "warning: --length-penalty: no effect without --num-beams"),
        {"--num-beams 1 --early-stopping", "warning: --early-stopping: no effect without --num-beams"},
        {"--temperature 1 --early-stopping", "warning: --early-stopping: no effect without --num-beams"},
        {"--num-beams 2 --top-k 5", "warning: --top-k: no effect with --num-beams"}}) {
    const CommandResult result = run_command(run + options);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_NE(result.err.find(named), std::string::npos) << result.err;
  }
  for (const char* options : {"", "--top-k 5 --temperature 1", "--repetition-penalty 1.1",
                              "--num-beams 2 --length-penalty 2 --early-stopping"})
    EXPECT_EQ(run_command(run + options).err.find("no effect"), std::string::npos) << options;
}

TEST(GenerateOptions, NamesTheDefaultOfEverySamplingOption) {
  const std::string help = run_command("COLUMNS=500 " + app("generate") + " --help").out;
  const size_t begin = help.find("\nSampling:\n"), end = help.find("\n\n", begin + 1);
  ASSERT_NE(begin, std::string::npos);
  int options = 0;
  for (const std::string& line : split(help.substr(begin + 11, end - begin - 11), '\n')) {
    EXPECT_NE(line.find("[default: "), std::string::npos) << line;
    ++options;
  }
  EXPECT_EQ(options, 9);
}

// Users of other tools type "-k 5" and "-5". Such words must not be taken for prompts.
TEST(GenerateOptions, TakeNoWordWithOneDashForAPrompt) {
  const auto answer = [](const std::string& options) {
    return run_command(app("generate") + " --model megalith-test-none " + options);
  };
  for (const std::string word : {"-5", "-0.7", "-.5", "-1e5", "-inf", "-n3", "-k"})
    for (const std::string before : {"--prompt x ", "--prompt x y "}) {
      const CommandResult refused = answer(before + word);
      EXPECT_EQ(refused.code, 64) << word;
      EXPECT_NE(refused.err.find("unknown option \"" + word + "\""), std::string::npos) << refused.err;
    }
  const CommandResult alone = answer("--prompt -5");
  EXPECT_EQ(alone.code, 64) << alone.err;
  EXPECT_NE(alone.err.find("it is given as \"--prompt=-5\""), std::string::npos) << alone.err;
  EXPECT_EQ(alone.err.find("needs a value"), std::string::npos) << alone.err;
  for (const char* text :
       {"--prompt=-5", "--prompt '- 5 apples'", "--prompt -", "--temperature 0 --prompt x"})
    EXPECT_EQ(answer(text).code, 66) << text << ": there is no such model";
}

TEST_P(GenerateApp, SamplesBySeed) {
  const auto sample = [&](int seed) {
    return generate(dir_ / "model", "The ",
                    concat("--temperature 1.5 --top-k 50 --top-p 0.95 --seed ", seed));
  };
  const CommandResult first = sample(1);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, sample(1).out);
  EXPECT_NE(first.out, sample(2).out);
}

TEST_P(GenerateApp, SaysWhatIsMissing) {
  const CommandResult nothing = generate(dir_ / "none", "a", "");
  EXPECT_EQ(nothing.code, 66) << nothing.err;
  const CommandResult no_prompt = run_command(app("generate") + " </dev/null --model " + (dir_ / "model"));
  EXPECT_EQ(no_prompt.code, 64) << no_prompt.err;
  EXPECT_NE(no_prompt.err.find("--prompt"), std::string::npos) << no_prompt.err;
  const CommandResult too_long = generate(dir_ / "model", std::string(400, 'a'), "");
  EXPECT_EQ(too_long.code, 64);
  EXPECT_NE(too_long.err.find("64 positions"), std::string::npos) << too_long.err;
  write_file(dir_ / "model/generation_config.json", "{\"eos_token_id\": 100000}");
  const CommandResult no_end = generate(dir_ / "model", "a", "");
  EXPECT_EQ(no_end.code, 65) << no_end.err;
  EXPECT_NE(no_end.err.find("model/generation_config.json: \"eos_token_id\" is 100000; wanted ids below"),
            std::string::npos)
      << no_end.err;
  std::filesystem::remove(dir_ / "model/tokenizer.json");
  const CommandResult mute = generate(dir_ / "model", "a", "");
  EXPECT_EQ(mute.code, 64) << mute.err;
  EXPECT_NE(mute.err.find("without a tokenizer"), std::string::npos) << mute.err;
}

TEST_P(GenerateApp, RunsAdaptersAsPeftDoes) {
  const Json goldens = Json::load(test_data("parity/goldens/adapters/texts.json"));
  for (const std::string kind : {"lora", "prefix"}) {
    const std::string name = std::string(GetParam()).substr(9) + "-" + kind;
    if (!goldens["texts"].find(name)) GTEST_SKIP() << "no adapter was made for this family";
    for (const Json& one : goldens["texts"][name].as_array()) {
      const auto lines = json_lines(generate(
          dir_ / "model", one["prompt"].as_string(),
          concat("--json --max-new-tokens 20 --adapter ", test_data("parity/goldens/adapters/" + name))));
      ASSERT_EQ(lines.size(), 1u);
      EXPECT_EQ(lines[0]["tokens"], one["tokens"]) << name << ": " << one["prompt"].as_string();
    }
  }
}

TEST_P(GenerateApp, PrintsEachPromptsTextWhateverTheBatch) {
  AtomicFile file(dir_ / "prompts.txt");
  file.write(std::string_view("The \ndef f(x):\na\nna\xC3\xAFve \xE6\x97\xA5\xE6\x9C\xAC\nif\n"));
  file.commit();
  for (const char* sampling : {"", "--temperature 1 --top-k 40 --seed 7 --num-return-sequences 2"}) {
    const std::string command = concat(app("generate"), " --model ", dir_ / "model", " --prompts-file ",
                                       dir_ / "prompts.txt", " --max-new-tokens 16 ", sampling);
    const CommandResult alone = run_command(command);
    EXPECT_EQ(alone.code, 0) << alone.err;
    for (const char* batch : {" --batch-size 3", " --batch-size 8 --threads 1"})
      EXPECT_EQ(run_command(command + batch).out, alone.out) << sampling << batch;
    const auto lines = json_lines(run_command(command + " --json --batch-size 4"));
    EXPECT_EQ(lines.size(), *sampling ? 10u : 5u);
    std::string joined;
    for (const Json& line : lines)
      joined += concat(line["prompt"].as_string(), line["text"].as_string(), "\n");
    EXPECT_EQ(joined, alone.out);
  }
}

TEST_P(GenerateApp, ReadsPromptsFromStdinAndJsonLines) {
  const std::string options = " --max-new-tokens 8 --model " + (dir_ / "model");
  const std::string text = run_command("printf 'The ' | " + app("generate") + options).out;
  EXPECT_TRUE(text.starts_with("The ")) << text;
  EXPECT_EQ(run_command("printf '{\"prompt\": \"The \"}\\n' > " + (dir_ / "p.jsonl") + " && " +
                        app("generate") + options + " --prompts-file " + (dir_ / "p.jsonl"))
                .out,
            text);
  EXPECT_EQ(run_command("printf 'The ' | " + app("generate") + options + " --no-echo").out, text.substr(4));
  const CommandResult bad = run_command("printf '\\377' | " + app("generate") + options);
  EXPECT_EQ(bad.code, 65) << bad.err;
}

TEST_P(GenerateApp, SaysOnATerminalWhatItWaitsFor) {
  const CommandResult shown =
      run_on_terminal(app("generate") + " --max-new-tokens 4 --model " + (dir_ / "model"), 80, "The \n");
  EXPECT_EQ(shown.code, 0) << shown.out;
  const size_t loading = shown.out.find("loading "),
               reading = shown.out.find("reading from the terminal; Ctrl-D"),
               loaded = shown.out.find("loaded in ");
  EXPECT_LT(loading, reading) << shown.out;
  EXPECT_LT(reading, loaded) << shown.out;
  ASSERT_NE(loaded, std::string::npos) << shown.out;
  EXPECT_LE(longest_line(shown.out.substr(0, reading)), 80u);
}

TEST_P(GenerateApp, TakesNoOptionForAPrompt) {
  const CommandResult result = generate(dir_ / "model", "x", "-k 3");
  EXPECT_EQ(result.code, 64) << result.out;
  EXPECT_NE(result.err.find("unknown option \"-k\""), std::string::npos) << result.err;
  EXPECT_EQ(generate(dir_ / "model", "-1 is", "--max-new-tokens 1").code, 0)
      << "a number or blanks make a text";
}

TEST_P(GenerateApp, StopsBeforeAStopText) {
  const auto free = json_lines(generate(dir_ / "model", "The ", "--json --max-new-tokens 24"));
  const std::string text = free[0]["text"].as_string();
  ASSERT_GT(text.size(), 8u);
  const size_t at = valid_utf8_prefix(std::string_view(text).substr(0, text.size() / 2));
  const std::string stop = text.substr(at, valid_utf8_prefix(std::string_view(text).substr(at, 6)));
  AtomicFile file(dir_ / "stop.yaml");
  file.write(concat("stop: [", Json(stop).dump(), "]\n"));
  file.commit();
  const auto cut = json_lines(
      generate(dir_ / "model", "The ", "--json --max-new-tokens 24 --config " + (dir_ / "stop.yaml")));
  EXPECT_EQ(cut[0]["text"].as_string(), text.substr(0, text.find(stop)));
  EXPECT_EQ(cut[0]["finish_reason"].as_string(), "stop");
}

TEST_P(GenerateApp, RunsTheChatTemplate) {
  const std::string chat = R"([{"role": "user", "content": "The "}])";
  const std::string run = "printf '%s' '" + chat + "' | " + app("generate") +
                          " --max-new-tokens 8 --chat - --json --model " + (dir_ / "model");
  const CommandResult none = run_command(run);
  EXPECT_EQ(none.code, 64);
  EXPECT_NE(none.err.find("no chat template"), std::string::npos) << none.err;
  AtomicFile file(dir_ / "model/chat_template.jinja");
  file.write(std::string_view("{% for m in messages %}{{ m.content }}{% endfor %}{{ eos_token }}"));
  file.commit();
  const auto lines = json_lines(run_command(run));
  EXPECT_EQ(lines[0]["prompt"].as_string(), "The ");
  EXPECT_EQ(lines[0]["tokens"],
            json_lines(generate(dir_ / "model", "The ", "--json --max-new-tokens 8"))[0]["tokens"]);
  write_file(dir_ / "chat.json", R"({"messages": )" + chat + R"(, "eos_token": "!", "tools": []})");
  const CommandResult more = run_command(app("generate") + " --max-new-tokens 1 --json --model " +
                                         (dir_ / "model") + " --chat " + (dir_ / "chat.json"));
  EXPECT_EQ(json_lines(more)[0]["prompt"].as_string(), "The !");
  EXPECT_NE(more.err.find("the chat template reads no \"tools\", which has no effect"), std::string::npos)
      << more.err;
  EXPECT_EQ(more.err.find("reads no \"eos_token\""), std::string::npos) << more.err;
}

TEST_P(GenerateApp, ReadsAMindFormersFile) {
  AtomicFile file(dir_ / "predict.yaml");
  file.write(
      concat("run_mode: predict\nload_checkpoint: ", dir_ / "model",
             "\nseed: 3\ncontext:\n  mode: 0\n  device_target: \"CPU\"\n  max_device_memory: \"31GB\"\n"
             "parallel_config:\n  model_parallel: 2\nmodel:\n  model_config:\n    do_sample: True\n"
             "    top_k: 5\n    top_p: 0.9\n    repetition_penalty: 1.1\n    max_decode_length: 20\n"
             "predict_data: [\"The \", \"a\"]\n"));
  file.commit();
  const auto theirs =
      json_lines(run_command(app("generate") + " --json --config " + (dir_ / "predict.yaml")));
  const auto ours = json_lines(run_command(app("generate") + " --json --model " + (dir_ / "model") +
                                           " --prompt 'The ' a --seed 3 --temperature 1 --top-k 5 --top-p "
                                           "0.9 --repetition-penalty 1.1 --max-length 20"));
  EXPECT_EQ(theirs, ours);
  EXPECT_EQ(theirs.size(), 2u);
  const std::string greedy = "sed -i 's/do_sample: True/do_sample: false\\n    temperature: 0.7/' " +
                             (dir_ / "predict.yaml") + " && " + app("generate") + " --json --config " +
                             (dir_ / "predict.yaml");
  const auto likeliest = json_lines(run_command(app("generate") + " --json --model " + (dir_ / "model") +
                                                " --prompt 'The ' a --repetition-penalty 1.1 --max-length 20"
                                                " --temperature 0"));
  EXPECT_EQ(json_lines(run_command(greedy)), likeliest);  // do_sample overrides the file's temperature
  EXPECT_EQ(json_lines(run_command(greedy + " --temperature 1")), ours);  // the command line overrides it
  const CommandResult train = run_command("sed -i 's/predict$/train/' " + (dir_ / "predict.yaml") + " && " +
                                          app("generate") + " --config " + (dir_ / "predict.yaml"));
  EXPECT_EQ(train.code, 64);
  EXPECT_NE(train.err.find("megalith-pretrain"), std::string::npos) << train.err;
}

TEST_P(GenerateApp, KeepsWeightsIn8BitsAndTheCacheInBf16) {
  for (const char* options : {"--int8", "--kv-cache bf16", "--int8 --kv-cache bf16 --batch-size 2"}) {
    const CommandResult result = generate(dir_ / "model", "The ", concat("--max-new-tokens 8 ", options));
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(result.out.starts_with("The ")) << result.out;
  }
}

TEST_P(GenerateApp, RefusesOptionsThatContradictEachOther) {
  const auto complaint = [&](const std::string& options) {
    const CommandResult result = generate(dir_ / "model", "a", options);
    EXPECT_EQ(result.code, 64) << options;
    return result.err;
  };
  EXPECT_NE(complaint("--prompts-file x").find("exclude each other"), std::string::npos);
  EXPECT_NE(complaint("--num-return-sequences 2").find("--temperature"), std::string::npos);
  EXPECT_NE(complaint("--stop ''").find("--stop"), std::string::npos);
  EXPECT_NE(complaint("--batch-size 33").find("--batch-size"), std::string::npos);
  EXPECT_NE(complaint("--max-length 1").find("with its continuation it may have 1;"), std::string::npos);
}

// Runs the commands of docs/generate.md in a folder with the files that they name.
TEST(GenerateDocs, CommandsRun) {
  const TempDir dir;
  namespace fs = std::filesystem;
  fs::copy(test_data("parity/goldens/generate-gpt2"), dir / "hf");
  fs::copy(test_data("text/goldens/trained/tokenizer.json"), dir / "hf");
  fs::copy(test_data("parity/goldens/adapters/gpt2-lora"), dir / "lora");
  const auto put = [&](const char* name, std::string_view text) {
    AtomicFile file(dir / name);
    file.write(text);
    file.commit();
  };
  put("hf/chat_template.jinja", "{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}");
  put("chat.json", R"([{"role": "user", "content": "The "}])");
  put("prompts.txt", "The \na\n");
  const std::vector<std::string> commands = doc_commands("generate.md");
  for (const std::string& command : commands) {
    const CommandResult result = run_command(
        concat("cd ", dir.path().string(), " && PATH=", MEGALITH_BINARY_DIR, "/bin:$PATH; ", command));
    EXPECT_EQ(result.code, 0) << command << "\n" << result.err;
    EXPECT_FALSE(result.out.empty()) << command;
  }
  EXPECT_EQ(commands.size(), 8U);
}

}  // namespace
}  // namespace megalith::test
