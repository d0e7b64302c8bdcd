#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"
#include "tests/support/json_log.h"

namespace megalith::test {

/// A folder with a model, "model", and "data": records that repeat a letter and ask for its number.
class FinetuneApp : public testing::Test {
 protected:
  FinetuneApp() {
    std::filesystem::copy(test_data("parity/goldens/generate-gpt2"), dir_ / "model");
    std::filesystem::copy(test_data("text/goldens/trained/tokenizer.json"), dir_ / "model");
    std::filesystem::create_directory(dir_ / "data");
    std::string train, dev;
    for (int i = 0; i < 24; ++i)
      (i < 20 ? train : dev) += concat("{\"src\": \"", std::string(static_cast<size_t>(1 + i % 4), letter(i)),
                                       " is\", \"tgt\": \" ", 1 + i % 3, "\"}\n");
    write_file(dir_ / "data/train.json", train);
    write_file(dir_ / "data/dev.json", dev);
  }
  CommandResult run(const std::string& options) const {
    return run_command("cd " + dir_.path().string() + " && OMP_WAIT_POLICY=passive " + app("finetune") + " " +
                       options);
  }
  CommandResult tune(const std::string& options, const std::string& output = "out") const {
    return run("--model_name_or_path model --dataset_name_or_path data --threads 1 --output_dir " + output +
               " " + options);
  }
  /// Makes a LLaMA "model" a Mistral with a window of so many tokens.
  void narrow_model(int window) const {
    Json config = Json::load(dir_ / "model/config.json");
    config.set("architectures", Json::parse(R"(["MistralForCausalLM"])", "test"));
    config.set("model_type", "mistral");
    config.set("sliding_window", window);
    write_file(dir_ / "model/config.json", config.dump());
  }
  /// Changes every weight of a model a little.
  void change_weights(const std::string& model) const {
    const std::string path = dir_ / model + "/model.safetensors";
    std::string bytes = read_file(path);
    uint64_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    for (size_t at = sizeof header + header; at < bytes.size(); at += sizeof(float))
      bytes[at] = static_cast<char>(bytes[at] ^ 1);
    write_file(path, bytes);
  }
  /// Replaces the records with as many questions, each with a preferred and a rejected answer.
  void write_pairs() const {
    std::string train, dev;
    for (int i = 0; i < 26; ++i)
      (i < 20 ? train : dev) +=
          concat("{\"prompt\": \"", std::string(static_cast<size_t>(1 + i % 4), letter(i)),
                 " is\", \"chosen\": \" ", 1 + i % 3, "\", \"rejected\": \" ", 1 + (i + 1) % 3, "\"}\n");
    write_file(dir_ / "data/train.json", train);
    write_file(dir_ / "data/dev.json", dev);
  }
  std::vector<double> losses(const std::string& file) const { return train_losses(dir_ / file); }
  void expect_losses(const std::string& file, const std::vector<double>& wanted) const {
    const std::vector<double> found = losses(file);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i] / wanted[i], 1, 1e-5) << i;
  }
  double last_evaluation(const std::string& file) const {
    double last = std::numeric_limits<double>::infinity();
    for (const std::string& line : split(trim(read_file(dir_ / file)), '\n'))
      if (const Json json = Json::parse(line, file); json["type"].as_string() == "valid")
        last = json["loss"].as_double();
    return last;
  }
  /// The first iteration that has the lowest evaluation loss.
  int64_t best_iteration(const std::string& file) const {
    int64_t best = 0;
    double min_loss = std::numeric_limits<double>::infinity();
    for (const Json& evaluation : log_lines(dir_ / file, "valid"))
      if (evaluation["loss"].as_double() < min_loss) {
        min_loss = evaluation["loss"].as_double();
        best = evaluation["iteration"].as_int();
      }
    return best;
  }
  static char letter(int i) { return static_cast<char>('a' + i % 3); }
  TempDir dir_;
};

}  // namespace megalith::test
