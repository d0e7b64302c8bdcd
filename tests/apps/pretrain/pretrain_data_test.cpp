// Tests what megalith-pretrain reads by the options of today's Megatron: data paths from files, budgets,
// whole validation sets, batches by a schedule, and fill-in-the-middle.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/checkpoint/native/checkpoint_format.h"
#include "libcore/io/cache/build_cache.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "tests/apps/pretrain/pretrain_app.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class PretrainData : public PretrainApp {
 protected:
  PretrainData() {
    for (const char* copy : {"d", "e"})
      for (const char* end : {".bin", ".idx"})
        fs::copy_file(dir_ / ("c" + std::string(end)), dir_ / (copy + std::string(end)));
  }
  /// The losses of steps, or of evaluations, as text.
  std::vector<std::string> losses_in(const std::string& name, const std::string& type = "train") const {
    std::vector<std::string> losses;
    for (const Json& line : lines(name, type)) losses.push_back(line["loss"].dump());
    return losses;
  }
  const std::string kNoPath = test::replaced(kModel, "--data-path c|--split 8,1,1", "");
};

TEST_F(PretrainData, OfAFileIsThatOfThePath) {
  write_file(dir_ / "words", "0.3 c\n0.7 d\n");
  ASSERT_EQ(run(kNoPath + "--data-path 0.3 c 0.7 d --split 8,1,1 --log-json path.jsonl").code, 0);
  const CommandResult result = run(kNoPath + "--data-args-path words --split 8,1,1 --log-json file.jsonl");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_EQ(losses_in("file.jsonl"), losses_in("path.jsonl"));
  EXPECT_EQ(losses_in("file.jsonl", "test"), losses_in("path.jsonl", "test"));
  EXPECT_EQ(run(kNoPath + "--data-args-path none").code, 66);
}

// c, d and e have 2780 tokens each; of their 40 documents --split 8,1,1 gives 32 to training, with 2096
// tokens.
TEST_F(PretrainData, WithBudgetsIsThatOfTheWeightsThatAreLogged) {
  write_file(dir_ / "budgets", "c tokens=5e3 d epochs=0.5");
  const CommandResult result =
      run(kNoPath + "--data-args-path budgets --split 8,1,1 --log-json budgets.jsonl");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_NE(result.out.find(" > the budgets as weights: 5000 c 1048 d\n"), std::string::npos) << result.out;
  ASSERT_EQ(run(kNoPath + "--data-path 5000 c 1048 d --split 8,1,1 --log-json weights.jsonl").code, 0);
  EXPECT_EQ(losses_in("budgets.jsonl"), losses_in("weights.jsonl"));
}

TEST_F(PretrainData, OfEachPartComesFromAJsonFile) {
  write_file(dir_ / "parts.json", R"({"train": "c", "valid": ["d"], "test": null})");
  ASSERT_EQ(run(kNoPath + "--train-data-path c --valid-data-path d --log-json own.jsonl").code, 0);
  const CommandResult result = run(kNoPath + "--per-split-data-args-path parts.json --log-json file.jsonl");
  ASSERT_EQ(result.code, 0) << result.all();
  EXPECT_EQ(losses_in("file.jsonl"), losses_in("own.jsonl"));
  EXPECT_EQ(losses_in("file.jsonl", "valid"), losses_in("own.jsonl", "valid"));
}

// 2780 tokens are 231 samples of 12: 57 batches of 4, and 3 samples.
TEST_F(PretrainData, IsValidatedAsAWholeSetBySet) {
  const std::string sets = kNoPath + "--train-data-path c --valid-data-path d e --full-validation ";
  const CommandResult one = run(sets + "--eval-iters 0 --log-json one.jsonl");
  ASSERT_EQ(one.code, 0) << one.all();
  const CommandResult each =
      run(sets + "--multiple-validation-sets --validation-set-names wiki code --log-json each.jsonl");
  ASSERT_EQ(each.code, 0) << each.all();
  EXPECT_NE(each.out.find(" validation-wiki loss at iteration 10 | lm loss value: "), std::string::npos);
  EXPECT_NE(each.out.find(" validation-code loss at iteration 20 on validation set | "), std::string::npos);
  // d and e are equal, so each has the loss of both together.
  const std::vector<Json> both = lines("one.jsonl", "valid"), apart = lines("each.jsonl", "valid");
  ASSERT_EQ(both.size(), 3U);
  ASSERT_EQ(apart.size(), 6U);
  for (size_t i = 0; i < apart.size(); ++i)
    EXPECT_NEAR(apart[i]["loss"].as_double(), both[i / 2]["loss"].as_double(), 1e-6);
  const CommandResult ranks = run(sets + "--nproc 2 --micro-batch-size 1 --log-json ranks.jsonl");
  ASSERT_EQ(ranks.code, 0) << ranks.all();
  EXPECT_NEAR(lines("ranks.jsonl", "valid").back()["loss"].as_double(), both.back()["loss"].as_double(),
              1e-5);
  const CommandResult weighted = run(kNoPath +
                                     "--train-data-path c --valid-data-path 1 d 2 e --full-validation "
                                     "--multiple-validation-sets");
  EXPECT_EQ(weighted.code, 64);
  EXPECT_NE(weighted.err.find("the valid data have weights"), std::string::npos) << weighted.err;
}

TEST_F(PretrainData, HasANameForEachValidationSet) {
  const std::string sets = kNoPath + "--train-data-path c --full-validation --multiple-validation-sets ";
  const CommandResult few = run(sets + "--valid-data-path 'd*' e --validation-set-names x");
  EXPECT_EQ(few.code, 64);
  EXPECT_NE(few.err.find("--validation-set-names has 1 name, --valid-data-path names 2 datasets"),
            std::string::npos)
      << few.err;
  EXPECT_EQ(run(sets + "--valid-data-path '[de]' --validation-set-names x y").code, 0);
  // A reading of all token ids, which may take hours, would end with exit code 65.
  fs::copy_file(dir_ / "c.idx", dir_ / "bad.idx");
  write_file(dir_ / "bad.bin", std::string(fs::file_size(dir_ / "c.bin"), '\x7f'));
  const std::string bad = test::replaced(sets, "--train-data-path c", "--train-data-path bad");
  EXPECT_EQ(run(bad + "--valid-data-path d e").code, 65);
  EXPECT_EQ(run(bad + "--valid-data-path d e --validation-set-names x").code, 64);
}

TEST_F(PretrainData, OfALargeOrderIsInFilesWithoutANameDuringTheRun) {
  fs::create_directory(dir_ / "temporary");
  fs::permissions(dir_ / "temporary", fs::perms::owner_all);  // whatever the umask is
  if (keeping_in(dir_ / "temporary") != Keeping::kOnDisk)
    GTEST_SKIP() << "temporary files are in memory here";
  // 3,000,000 samples of 12 tokens: 4 bytes for each of 40 documents in 12,950 epochs, 12 for each sample.
  const std::string all = test::replaced(kNoPath, "--train-iters 20", "--train-iters 750000") +
                          "--data-path c --split 1,0,0 --eval-iters 0 --exit-interval 2 ";
  const std::string small = test::replaced(all, "--train-iters 750000", "--train-iters 20");
  const std::string where = "cd " + dir_.path().string() + " && export TMPDIR=" + (dir_ / "temporary") + "; ";
  const auto lines_of_memory = [&](const std::string& command) {
    const CommandResult result = run_command(where + app("pretrain") + " " + command);
    EXPECT_EQ(result.code, 0) << result.all();
    EXPECT_TRUE(fs::is_empty(dir_ / "temporary"));
    return result.out;
  };
  EXPECT_NE(lines_of_memory(all + "--log-json files.jsonl").find("order of samples in files, "),
            std::string::npos);
  EXPECT_EQ(lines_of_memory(small).find("in files"), std::string::npos);
  ASSERT_EQ(run(all + "--data-cache-path kept --log-json kept.jsonl").code, 0);
  EXPECT_EQ(losses_in("files.jsonl").size(), 2U);
  EXPECT_EQ(losses_in("files.jsonl"), losses_in("kept.jsonl"));
  const CommandResult during =
      run_command(where + app("pretrain") + " " + test::replaced(all, "--exit-interval 2 ", "") +
                  "> log & run=$!; until grep -q ' iteration .* loss' log; do kill -0 $run || exit 1; sleep "
                  "0.05; done; kill -9 $run; ls $TMPDIR");
  EXPECT_EQ(during.code, 0) << during.all();
  EXPECT_EQ(during.out, "") << "what a run has left that was killed while it trained";
}

TEST_F(PretrainData, IsReadInBatchesOfASchedule) {
  const std::string model =
      test::replaced(kModel, "--global-batch-size 4|--train-iters 20|--lr-warmup-iters 2", "") +
      "--train-samples 60 --step-batch-size-schedule '0:4 240:8' ";
  const CommandResult result = run(model + "--log-interval 1");
  ASSERT_EQ(result.code, 0) << result.all();
  for (const char* line :
       {"step batch size schedule (2 steps):\n",
        "  >= 240 tokens (20 samples) -> batch_size=8, num_microbatches=4\n",
        " iteration        5/      10 | consumed samples:           20 |", "| global batch size:     8 |",
        " iteration       10/      10 | consumed samples:           60 |"})
    EXPECT_NE(result.out.find(line), std::string::npos) << line << result.out;
  EXPECT_EQ(run(model + "--global-batch-size 4").code, 64);
}

TEST_F(PretrainData, IsSavedWithTheCheckpointsToRetain) {
  ASSERT_EQ(train("--save s --save-interval 3 --save-retain-interval 6").code, 0);
  std::string kept;
  for (const int step : {3, 6, 9, 12, 15, 18, 20})
    if (fs::exists(dir_.path() / "s" / iteration_folder(step))) kept += std::to_string(step) + " ";
  EXPECT_EQ(kept, "6 12 18 20 ");
  const CommandResult odd = train("--save t --save-interval 3 --save-retain-interval 7");
  EXPECT_EQ(odd.code, 64);
  EXPECT_NE(odd.err.find("--save-retain-interval 7 is not a multiple of --save-interval 3"),
            std::string::npos)
      << odd.err;
}

class PretrainFim : public PretrainApp {
 protected:
  PretrainFim() {
    TokenizerFiles files;
    files.type = "HuggingFaceTokenizer";
    files.model = test_data("data/goldens/fim/tokenizer.json");
    const auto tokenizer = make_tokenizer(files);
    IndexedDatasetWriter writer(dir_ / "code", IndexedDType::kU16);
    for (int i = 0; i < 60; ++i) {
      std::vector<int32_t> ids;
      tokenizer->encode(
          "for i in range(" + std::to_string(i) + "):\n    print(i + " + std::to_string(7 * i) + ")\n", ids);
      ids.push_back(tokenizer->eod());
      writer.add_document(ids, std::vector{static_cast<int32_t>(ids.size())});
    }
    writer.finish();
    model_ = test::replaced(kModel, "--data-path c|--vocab-size 61", "") +
             "--data-path code --tokenizer-type HuggingFaceTokenizer --tokenizer-model " + files.model +
             " --eod-mask-loss ";
  }
  std::vector<std::string> losses_in(const std::string& name) const {
    std::vector<std::string> losses;
    for (const char* type : {"train", "valid", "test"})
      for (const Json& line : lines(name, type)) losses.push_back(line["loss"].dump());
    return losses;
  }
  std::string model_;
};

TEST_F(PretrainFim, ChangesTheSamplesAndResumesBitForBit) {
  const std::string fim = model_ + "--fim-data --fim-rate 0.9 --fim-spm-rate 0.5 ";
  ASSERT_EQ(run(model_ + "--log-json plain.jsonl").code, 0);
  const CommandResult whole = run(fim + "--log-json whole.jsonl --save whole");
  ASSERT_EQ(whole.code, 0) << whole.all();
  ASSERT_EQ(run(fim + "--log-json parts.jsonl --save parts --load parts --exit-interval 7").code, 0);
  ASSERT_EQ(run(fim + "--log-json parts.jsonl --save parts --load parts").code, 0);
  EXPECT_EQ(losses_in("parts.jsonl"), losses_in("whole.jsonl"));
  EXPECT_NE(losses_in("plain.jsonl"), losses_in("whole.jsonl"));
  const CommandResult other = run(model_ +
                                  "--load whole --save whole --train-iters 21 --fim-data --fim-rate 0.2 "
                                  "--override-opt_param-scheduler");
  EXPECT_NE(other.err.find("--fim-rate is 0.2, but was 0.9 when the checkpoint was saved"), std::string::npos)
      << other.all();
}

TEST_F(PretrainFim, IsTheSameInEveryLayout) {
  const std::string fim = model_ + "--fim-data --fim-rate 0.9 --dry-run ";
  const auto samples = [](const std::string& out) { return out.substr(out.find("first samples:")); };
  const CommandResult one = run(fim), two = run(fim + "--nproc 2");
  ASSERT_EQ(one.code, 0) << one.all();
  EXPECT_EQ(samples(one.out), samples(two.out));
  EXPECT_NE(one.out.find("<fim_"), std::string::npos) << one.out;
  const std::string trained = model_ + "--fim-data --fim-rate 0.9 ";
  ASSERT_EQ(run(trained + "--log-json one.jsonl").code, 0);
  ASSERT_EQ(run(trained + "--nproc 2 --log-json two.jsonl").code, 0);
  const std::vector<double> a = train_losses(dir_ / "one.jsonl"), b = train_losses(dir_ / "two.jsonl");
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(b[i] / a[i], 1, 1e-5) << i;  // as in PretrainThreads
}

TEST_F(PretrainFim, NeedsItsTokens) {
  const CommandResult result = run(model_ + "--fim-data --fim-middle-token '<mid>'");
  EXPECT_EQ(result.code, 64);
  EXPECT_NE(result.err.find("--fim-middle-token \"<mid>\": the tokenizer has no such token"),
            std::string::npos)
      << result.err;
  EXPECT_NE(train("--fim-data").err.find("--fim-data needs a tokenizer"), std::string::npos);
}

}  // namespace
}  // namespace megalith::test
