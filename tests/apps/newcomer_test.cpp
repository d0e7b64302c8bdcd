#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/compiler.h"
#include "tests/support/files.h"
#include "tests/support/terminal.h"

// Commands that reproduce a new user's problems (issue "What a newcomer trips over").

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

/// A folder with a corpus of 300 documents, two tokenizers, and a dataset of the corpus made with the first
/// tokenizer.
class Newcomer : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    std::string corpus;
    for (int i = 0; i < 300; ++i)
      corpus += concat("{\"text\": \"Document ", i,
                       " of the corpus: ", std::string(static_cast<size_t>(i % 7), 'x'),
                       " def main(self, n): return n * ", i * i, "\"}\n");
    write_file(path("corpus.jsonl"), corpus);
    for (const char* size : {"300", "400"})
      ok("megalith-tokenizer train --input corpus.jsonl --vocab-size " + std::string(size) + " --output t" +
         size);
    ok("megalith-preprocess --input corpus.jsonl --output-prefix c --append-eod --tokenizer-model t300");
  }
  static void TearDownTestSuite() { delete dir_; }

  static std::string path(const std::string& name) { return *dir_ / name; }
  static std::string in_folder(const std::string& command) {
    return "export PATH=" + fs::path(app("x")).parent_path().string() + ":$PATH\ncd " +
           dir_->path().string() + "\n" + command;
  }
  static CommandResult run(const std::string& command) { return run_command(in_folder(command)); }
  static CommandResult ok(const std::string& command) {
    const CommandResult result = run(command);
    EXPECT_EQ(result.code, 0) << command << '\n' << result.out << result.err;
    return result;
  }
  static CommandResult train(const std::string& options, const std::string& data = "c_text_document") {
    return run(
        "megalith-pretrain --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 "
        "--max-position-embeddings 16 --micro-batch-size 2 --train-iters 4 --lr 1e-3 --eval-iters 1 "
        "--eval-interval 2 "
        "--split 8,1,1 --log-interval 2 --threads 1 --data-path " +
        data + " " + options);
  }
  static TempDir* dir_;
};
TempDir* Newcomer::dir_ = nullptr;

TEST_F(Newcomer, TrainsOnNoOtherTokenizersDataset) {
  const CommandResult other = train("--tokenizer-model t400");
  EXPECT_EQ(other.code, 64) << other.err;
  EXPECT_NE(other.err.find("c_text_document: was made with "), std::string::npos) << other.err;
  const CommandResult forced = train("--tokenizer-model t400 --allow-tokenizer-mismatch");
  EXPECT_EQ(forced.code, 0) << forced.err;
  EXPECT_NE((forced.out + forced.err).find("warning: c_text_document: was made with "), std::string::npos);
  EXPECT_EQ(train("--tokenizer-model t300").code, 0);
  EXPECT_EQ(train("--vocab-size 300").code, 0) << "a run without a tokenizer has nothing to compare";
  ok("megalith-preprocess --input corpus.jsonl --output-prefix d --append-eod --tokenizer-model t400");
  const CommandResult blend = train("--vocab-size 400", "c_text_document d_text_document");
  EXPECT_EQ(blend.code, 64) << blend.err;
  EXPECT_NE(blend.err.find("d_text_document: was made with "), std::string::npos) << blend.err;
}

// A model's weights fit the ids of one tokenizer only. A dataset of another tokenizer must be refused, even
// if the run names no tokenizer, or one of the same size.
TEST_F(Newcomer, ContinuesWithNoOtherTokenizersDataset) {
  ASSERT_EQ(train("--tokenizer-model t300 --save before").code, 0);
  ok("megalith-convert before --output before-hf --no-check");
  ok("megalith-convert before --to megatron --output before-megatron --no-check");
  ok("sed 's/Document/Chapter/' corpus.jsonl | sed 's/corpus/shelf of books/' > books.jsonl; "
     "megalith-tokenizer train --input books.jsonl --vocab-size 300 --output t300b; "
     "megalith-preprocess --input books.jsonl --output-prefix b --append-eod --tokenizer-model t300b");
  const std::string books = "b_text_document", more = " --override-opt_param-scheduler --train-iters 6";
  for (const char* const from : {"--load before", "--load before/iter_0000004", "--load before --finetune",
                                 "--load before-hf", "--load before-megatron"}) {
    const CommandResult refused = train(concat("--vocab-size 300 ", from, more), books);
    EXPECT_EQ(refused.code, 64) << from << refused.all();
    EXPECT_NE(refused.err.find("b_text_document: was made with "), std::string::npos) << refused.err;
    EXPECT_EQ(train(concat("--vocab-size 300 ", from, more)).code, 0) << from;
    const CommandResult other = train(concat("--tokenizer-model t300b ", from, more), books);
    EXPECT_EQ(other.code, 64) << from << other.all();
    EXPECT_NE(other.err.find(": was trained with "), std::string::npos) << other.err;
    EXPECT_EQ(train(concat("--tokenizer-model t300 ", from, more)).code, 0) << from;
  }
  // If the tokenizer's type is unknown, it cannot be compared: the run warns and uses the weights.
  fs::copy(path("before-hf"), path("odd-hf"));
  Json odd = Json::load(path("odd-hf/tokenizer.json"));
  odd.set("pre_tokenizer", Json(Json::Object{{"type", "megalith-test"}}));
  write_file(path("odd-hf/tokenizer.json"), odd.dump());
  const CommandResult unknown = train("--vocab-size 300 --load odd-hf" + more, books);
  EXPECT_EQ(unknown.code, 0) << unknown.err;
  EXPECT_NE(unknown.err.find("odd-hf: its tokenizer cannot be compared: "), std::string::npos) << unknown.err;
  const CommandResult forced =
      train("--vocab-size 300 --load before --allow-tokenizer-mismatch" + more, books);
  EXPECT_EQ(forced.code, 0) << forced.err;
  EXPECT_NE(forced.err.find("warning: b_text_document: was made with "), std::string::npos) << forced.err;
}

TEST_F(Newcomer, SaysOnceThatEndTokensAreMissing) {
  const auto count = [](const std::string& text, const std::string& part) {
    int n = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
    return n;
  };
  const std::string forgotten = "--append-eod is not given";
  const CommandResult without =
      ok("megalith-preprocess --input corpus.jsonl --output-prefix w --tokenizer-model t300 --workers 2");
  EXPECT_EQ(count(without.all(), forgotten), 1) << without.all();
  const CommandResult with =
      ok("megalith-preprocess --input corpus.jsonl --output-prefix v --append-eod --tokenizer-model t300");
  EXPECT_EQ(count(with.all(), forgotten), 0) << with.all();
  const std::string warning = ": no document ends with the end token (id ";
  for (const char* option : {"--reset-position-ids", "--reset-attention-mask", "--eod-mask-loss"}) {
    const CommandResult warned =
        train(concat("--tokenizer-model t300 ", option), "w_text_document v_text_document");
    EXPECT_EQ(warned.code, 0) << warned.err;
    EXPECT_EQ(count(warned.all(), warning), 1) << warned.all();
    EXPECT_NE(warned.err.find("warning: w_text_document" + warning), std::string::npos) << warned.err;
    EXPECT_NE(warned.err.find(concat(", which ", option, " looks for; ")), std::string::npos) << warned.err;
    EXPECT_EQ(count(train(concat("--tokenizer-model t300 ", option), "v_text_document").all(), warning), 0);
  }
  EXPECT_EQ(count(train("--tokenizer-model t300", "w_text_document").all(), warning), 0);
}

TEST_F(Newcomer, EvaluatesAModelOnAFile) {
  ASSERT_EQ(train("--tokenizer-model t300 --save trained").code, 0);
  ok("megalith-convert trained --output trained-hf --no-check");
  const auto evaluate = [](const std::string& options, const std::string& model = "trained") {
    return run(concat("megalith-pretrain --eval-only --threads 1 --load ", model, ' ', options));
  };
  const auto loss_of = [](const CommandResult& result) {
    EXPECT_EQ(result.code, 0) << result.all();
    const size_t at = result.out.find(" on validation set | ");
    EXPECT_NE(at, std::string::npos) << result.all();
    return at == std::string::npos ? std::string() : result.out.substr(at, result.out.find('\n', at) - at);
  };
  const CommandResult alone = evaluate("--valid-data-path c_text_document");
  const std::string loss = loss_of(alone);
  EXPECT_EQ(alone.out.find("training ..."), std::string::npos) << alone.out;
  // A run that was trained continues in the validation samples; a model alone begins with the first ones.
  loss_of(evaluate("--valid-data-path c_text_document", "trained-hf"));
  // The same with all that the model and the run would be asked for otherwise.
  EXPECT_EQ(loss_of(evaluate("--num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 "
                             "--max-position-embeddings 16 --micro-batch-size 1 --tokenizer-model t300 "
                             "--valid-data-path c_text_document")),
            loss);
  write_file(path("plain.txt"), read_file(path("corpus.jsonl")));
  loss_of(evaluate("--valid-data-path plain.txt"));
  EXPECT_EQ(run("megalith-pretrain --eval-only --load trained").code, 64);
  const CommandResult trains = run("megalith-pretrain --load trained --valid-data-path c_text_document");
  EXPECT_EQ(trains.code, 64);
  EXPECT_NE(trains.err.find("need --train-data-path, or --eval-only"), std::string::npos) << trains.err;
}

// 5 documents: the default split of 969, 30 and 1 rounds to 5, 0 and 0.
TEST_F(Newcomer, NamesASplitThatWorksWithFiveDocuments) {
  ok("head -n 5 corpus.jsonl > five.jsonl; megalith-preprocess --input five.jsonl --output-prefix five "
     "--append-eod --tokenizer-model t300");
  const CommandResult few = train("--tokenizer-model t300 --split 969,30,1", "five_text_document");
  EXPECT_EQ(few.code, 0) << few.err;
  EXPECT_NE(
      few.err.find("leaves no validation and test data: that evaluation is left out; --split 3,1,1 gives "
                   "each part some documents"),
      std::string::npos)
      << few.err;
  const CommandResult advised = train("--tokenizer-model t300 --split 3,1,1", "five_text_document");
  EXPECT_EQ(advised.code, 0) << advised.err;
  EXPECT_EQ(advised.err, "");
}

TEST_F(Newcomer, NamesTheKeyThatIsThere) {
  write_file(path("keyed.jsonl"), "{\"id\": 1, \"content\": \"some text\"}\n");
  const CommandResult wrong =
      run("megalith-preprocess --input keyed.jsonl --output-prefix k --append-eod --tokenizer-model t300");
  EXPECT_EQ(wrong.code, 65) << wrong.all();
  const std::string remedy = "--json-keys content";
  EXPECT_NE(wrong.all().find("no \"text\"; the line has \"id\", \"content\"; give " + remedy),
            std::string::npos)
      << wrong.all();
  ok("megalith-preprocess --input keyed.jsonl --output-prefix k --append-eod --tokenizer-model t300 " +
     remedy);
}

TEST_F(Newcomer, SaysHowARunGetsToWeightsAndBiases) {
  const CommandResult asked = train("--tokenizer-model t300 --wandb-project mine --wandb-exp-name first");
  EXPECT_EQ(asked.code, 0) << asked.err;
  EXPECT_NE(
      asked.out.find("give --tensorboard-dir DIR, then wandb sync --sync-tensorboard --project mine DIR"),
      std::string::npos)
      << asked.out;
  EXPECT_NE(asked.out.find("ignored, no effect here: --wandb-exp-name --wandb-project"), std::string::npos)
      << asked.out;
  EXPECT_EQ(train("--tokenizer-model t300").all().find("wandb"), std::string::npos);
}

TEST_F(Newcomer, NamesTheDatasetThatWasMeant) {
  const CommandResult result = train("--tokenizer-model t300", "c");
  EXPECT_EQ(result.code, 66) << result.err;
  EXPECT_NE(result.err.find("did you mean \"c_text_document\"?"), std::string::npos) << result.err;
}

// --train-data-path reads every file as text, and so the keys of loose JSON, too.
TEST_F(Newcomer, WarnsOfJsonThatIsLearnedAsText) {
  fs::create_directories(path("mixed"));
  write_file(path("mixed/a.jsonl"), "{\"text\": \"one two three four five six seven eight nine ten\"}\n");
  write_file(path("mixed/b.jsonl"), "{\"text\": \"b\"}\n");
  write_file(path("mixed/c.txt"), "{ is how a block begins\n");
  const auto warned = [&](const std::string& data) {
    const CommandResult result =
        run("megalith-pretrain --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 8 "
            "--max-position-embeddings 8 --micro-batch-size 1 --train-iters 1 --lr 0.01 --threads 1 "
            "--tokenizer-model t300 --train-data-path " +
            data);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.err;
  };
  EXPECT_NE(warned("mixed").find("mixed/a.jsonl and 1 more file: JSON is learned as it stands"),
            std::string::npos);
  EXPECT_NE(warned("mixed/a.jsonl").find("megalith-preprocess --input mixed/a.jsonl"), std::string::npos);
  EXPECT_EQ(warned("mixed/c.txt").find("JSON"), std::string::npos);
}

TEST_F(Newcomer, NamesTheOptionThatTakesTexts) {
  fs::create_directories(path("texts/more"));
  write_file(path("texts/more/a.txt"), "a");
  fs::create_directories(path("records"));
  write_file(path("records/a.jsonl"), "{}");
  const auto expect = [](const std::string& data, const std::string& part) {
    const CommandResult result = train("--tokenizer-model t300", data);
    EXPECT_EQ(result.code, 64) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
  };
  expect("texts", "--data-path texts is text, not the prefix of a dataset; give it to --train-data-path");
  expect("0.5 c_text_document 0.5 texts/more/a.txt", "--data-path texts/more/a.txt is text");
  expect("records", "--data-path records is loose JSON, not the prefix of a dataset");
  expect("corpus.jsonl", "make a dataset of it with megalith-preprocess");
  fs::create_directories(path("c_text_document"));  // a folder beside the dataset of that name
  write_file(path("c_text_document/a.txt"), "a");
  EXPECT_EQ(train("--tokenizer-model t300").code, 0);
  fs::remove_all(path("c_text_document"));
}

TEST_F(Newcomer, NamesATokenizerByAFolderAFileOrItsId) {
  fs::create_directories(path("gpt2"));
  for (const char* name : {"vocab.json", "merges.txt"})
    fs::copy_file(path("t300/") + name, path("gpt2/") + name, fs::copy_options::overwrite_existing);
  fs::create_directories(path("hub/models--me--mine/refs"));
  fs::create_directories(path("hub/models--me--mine/snapshots"));
  write_file(path("hub/models--me--mine/refs/main"), "r1");
  fs::create_directory_symlink(path("t300"), path("hub/models--me--mine/snapshots/r1"));
  const auto ids = [](const std::string& model) {
    return ok("export HF_HUB_CACHE=$PWD/hub; echo 'Document 7' | megalith-tokenizer encode "
              "--tokenizer-model " +
              model)
        .out;
  };
  const std::string expected = ids("t300/tokenizer.json");
  for (const char* model : {"t300", "gpt2", "gpt2/vocab.json", "gpt2/merges.txt", "me/mine"})
    EXPECT_EQ(ids(model), expected) << model;
  const CommandResult absent =
      run("echo x | HF_HUB_CACHE=$PWD/hub megalith-tokenizer encode --tokenizer-model openai/gpt2");
  EXPECT_EQ(absent.code, 66) << absent.err;
  EXPECT_NE(
      absent.err.find("/hub holds no Hugging Face model of this id; fetch it with `hf download openai/gpt2`"),
      std::string::npos)
      << absent.err;
}

TEST_F(Newcomer, KeepsTheEndTokenWithTheModel) {
  ok("megalith-preprocess --input corpus.jsonl --output-prefix e --append-eod --tokenizer-model t300 "
     "--eod-token '!'");
  EXPECT_EQ(train("--tokenizer-model t300", "e_text_document").code, 64) << "another end, another tokenizer";
  ASSERT_EQ(train("--tokenizer-model t300 --eod-token '!' --save end", "e_text_document").code, 0);
  const CommandResult last =
      ok("megalith-data cat e_text_document --from 299 --count 1 --tokenizer-model t300");
  EXPECT_NE(last.out.find("!\"}"), std::string::npos) << last.out;
  // Generation must end at this token, as the documents do. megalith-generate finds the token in the
  // tokenizer.
  EXPECT_EQ(run("megalith-generate --model end --prompt a --max-new-tokens 2").code, 0);
}

// The tokenizer consists of GPT-2's two files, with another end-of-document token. Every program must be able
// to use a model trained with it.
TEST_F(Newcomer, ConvertsAndRunsAModelWhoseEndTokenWasNamed) {
  fs::create_directories(path("stop"));
  fs::copy_file(path("t300/merges.txt"), path("stop/merges.txt"), fs::copy_options::overwrite_existing);
  std::string vocab = read_file(path("t300/vocab.json"));
  const std::string usual = "<|endoftext|>";
  vocab.replace(vocab.find(usual), usual.size(), "<stop>");
  write_file(path("stop/vocab.json"), vocab);
  const std::string tokenizer = "--tokenizer-model stop --eod-token '<stop>' ";
  ok("megalith-preprocess --input corpus.jsonl --output-prefix s --append-eod " + tokenizer);
  ASSERT_EQ(train(tokenizer + "--ckpt-format torch --save st-torch", "s_text_document").code, 0);
  ASSERT_EQ(train(tokenizer + "--save st-native", "s_text_document").code, 0);
  ok("megalith-convert st-torch --output st-torch-hf");
  ok("megalith-convert st-torch/iter_0000004/mp_rank_00/model_optim_rng.pt --output file-hf");
  ok("megalith-convert st-native --to megatron --output st-release");
  ok("megalith-convert st-release --to megalith --output back");
  ok("megalith-convert st-native --output native-hf");
  for (const char* model : {"st-torch", "st-release", "back", "native-hf", "st-torch-hf", "file-hf"})
    EXPECT_EQ(run(concat("megalith-generate --prompt a --max-new-tokens 2 --model ", model)).code, 0)
        << model;
  const CommandResult more =
      train("--use-checkpoint-args --load st-torch --train-iters 6 --override-opt_param-scheduler",
            "s_text_document");
  EXPECT_EQ(more.code, 0) << more.all();
  for (const std::string hf : {"st-torch-hf", "file-hf", "native-hf"}) {
    EXPECT_EQ(Json::load(path(hf + "/config.json"))["eos_token_id"], Json(0)) << hf;
    for (const char* file : {"/special_tokens_map.json", "/tokenizer_config.json"})
      EXPECT_EQ(Json::load(path(hf + file))["eos_token"], Json("<stop>")) << hf << file;
    const Json decoder = Json::load(path(hf + "/tokenizer_config.json"))["added_tokens_decoder"];
    EXPECT_EQ(decoder["0"]["content"], Json("<stop>")) << hf;
  }
}

// Conversion accepts --tokenizer-model in every form that other programs accept. Equal logits show that
// nothing else changed.
TEST_F(Newcomer, ConvertsWithATokenizerByAFolderAFileOrItsId) {
  ASSERT_EQ(train("--vocab-size 300 --save plain").code, 0);
  fs::create_directories(path("named"));
  for (const char* name : {"vocab.json", "merges.txt"})
    fs::copy_file(path("t300/") + name, path("named/gpt2-") + name, fs::copy_options::overwrite_existing);
  fs::create_directories(path("hub/models--me--tok/refs"));
  fs::create_directories(path("hub/models--me--tok/snapshots"));
  write_file(path("hub/models--me--tok/refs/main"), "r1");
  fs::create_directory_symlink(path("t300"), path("hub/models--me--tok/snapshots/r1"));
  const std::string convert = "export HF_HUB_CACHE=$PWD/hub; megalith-convert plain --no-check --output ";
  int number = 0;
  for (const std::string option :
       {"--tokenizer-model t300", "--tokenizer-model t300/vocab.json", "--tokenizer-model t300/merges.txt",
        "--tokenizer-model named", "--tokenizer-model named/gpt2-merges.txt", "--tokenizer-model me/tok",
        "--tokenizer me/tok", "--tokenizer named",
        "--vocab-file t300/vocab.json --merge-file t300/merges.txt"}) {
    const std::string out = concat("plain-hf", number++);
    ok(convert + out + " " + option);
    EXPECT_EQ(Json::load(path(out + "/tokenizer.json"))["model"]["vocab"],
              Json::load(path("t300/tokenizer.json"))["model"]["vocab"])
        << option;
  }
  fs::create_directories(path("ranks"));
  fs::copy_file(test_data("text/goldens/pieces.model"), path("ranks/spiece.model"),
                fs::copy_options::overwrite_existing);
  std::string ranks;  // each line: a byte in base64, its rank
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t byte = 0; byte < 256; ++byte)
    ranks += concat(kDigits[byte >> 2], kDigits[(byte & 3) << 4], "== ", byte, '\n');
  write_file(path("ranks.tiktoken"), ranks);
  for (const auto& [from, out] : {std::pair{"ranks", "sp-hf"}, {"ranks/spiece.model", "sp2-hf"}}) {
    ok(convert + out + " --tokenizer-model " + from);
    EXPECT_EQ(read_file(path(std::string(out) + "/tokenizer.model")), read_file(path("ranks/spiece.model")));
  }
  ok(convert + "tik-hf --tokenizer-model ranks.tiktoken");
  EXPECT_EQ(read_file(path("tik-hf/tokenizer.model")), read_file(path("ranks.tiktoken")));
  const CommandResult absent = run(convert + "x --tokenizer-model me/other");
  EXPECT_EQ(absent.code, 66) << absent.err;
  EXPECT_NE(absent.err.find("hf download me/other"), std::string::npos) << absent.err;
  const CommandResult none = run(convert + "x --tokenizer-model hub");
  EXPECT_EQ(none.code, 66) << none.err;
  EXPECT_NE(none.err.find("hub: holds no tokenizer; looked for tokenizer.json"), std::string::npos)
      << none.err;
}

TEST_F(Newcomer, FindsTheTokenizerOfACheckpointWhoseFilesAreGone) {
  fs::create_directories(path("gone"));
  for (const char* name : {"vocab.json", "merges.txt"})
    fs::copy_file(path("t300/") + name, path("gone/") + name);
  ASSERT_EQ(train("--vocab-file gone/vocab.json --merge-file gone/merges.txt --save first").code, 0);
  fs::remove_all(path("gone"));
  ok("megalith-convert first --to megalith --output converted");
  ok("megalith-convert first --to megatron --output mlm");
  ok("megalith-convert first --output hf");
  ASSERT_EQ(train("--tokenizer-model t300 --ckpt-format torch --save torch").code, 0);
  for (const char* from :
       {"first", "converted", "mlm", "mlm/release", "mlm/release/mp_rank_00", "torch", "hf"}) {
    const CommandResult result = run("megalith-pretrain --use-checkpoint-args --load " + std::string(from) +
                                     " --finetune --micro-batch-size 2 --train-iters 2 --lr 1e-3 "
                                     "--eval-iters 0 --data-path c_text_document");
    EXPECT_EQ(result.code, 0) << from << ": " << result.err;
  }
}

TEST_F(Newcomer, RunsAModelByItsId) {
  ASSERT_EQ(train("--tokenizer-model t300 --save known").code, 0);
  ok("megalith-convert known --output known-hf");
  fs::create_directories(path("models/models--me--model/refs"));
  fs::create_directories(path("models/models--me--model/snapshots"));
  write_file(path("models/models--me--model/refs/main"), "r1");
  fs::create_directory_symlink(path("known-hf"), path("models/models--me--model/snapshots/r1"));
  const std::string generate =
      "HF_HUB_CACHE=$PWD/models megalith-generate --prompt a --max-new-tokens 2 --model ";
  EXPECT_EQ(ok(generate + "me/model").out, ok(generate + "known-hf").out);
  const std::string shape =
      "--mock-data --dry-run --micro-batch-size 1 --train-iters 1 --lr 0.1 --model-name-or-path ";
  const std::string without_names = " | grep -v 'only the shape of'";
  EXPECT_EQ(ok("HF_HUB_CACHE=$PWD/models megalith-pretrain " + shape + "me/model" + without_names).out,
            ok("megalith-pretrain " + shape + "known-hf" + without_names).out);
  const std::string plan =
      "HF_HUB_CACHE=$PWD/models megalith-autoplan --gpu h100 --world-size 2 --local-world-size 2 "
      "--global-batch-size 8 --seq-length 16 --hf ";
  EXPECT_EQ(ok(plan + "me/model").out, ok(plan + "known-hf/config.json").out);
  const CommandResult unknown = run(plan + "me/other");
  EXPECT_EQ(unknown.code, 66) << unknown.err;
  EXPECT_NE(unknown.err.find("`hf download me/other`"), std::string::npos) << unknown.err;
  const CommandResult absent = run(generate + "me/other");
  EXPECT_EQ(absent.code, 66) << absent.err;
  EXPECT_NE(absent.err.find("`hf download me/other`"), std::string::npos) << absent.err;
}

TEST_F(Newcomer, ConvertsWeightsThatAreNotFiniteAsTheyAre) {
  ASSERT_EQ(train("--tokenizer-model t300 --save sick").code, 0);
  ok("megalith-convert sick --output sick-hf");
  std::string bytes = read_file(path("sick-hf/model.safetensors"));
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (size_t at = sizeof header + header; at + sizeof nan <= bytes.size(); at += 64 * sizeof nan)
    std::memcpy(bytes.data() + at, &nan, sizeof nan);
  write_file(path("sick-hf/model.safetensors"), bytes);
  const CommandResult result = ok("megalith-convert sick-hf --to megalith --output sick-again");
  EXPECT_NE(result.err.find("warning: sick-hf: tensor \""), std::string::npos) << result.err;
  EXPECT_NE(result.err.find(" holds nan at element 0, the first of "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find(" numbers that are not finite: the model is damaged"), std::string::npos)
      << result.err;
}

TEST_F(Newcomer, ShowsProgressWithinTheTerminalAndContinuesCounting) {
  const std::string deep = std::string(60, 'd') + "/" + std::string(60, 'e');
  fs::create_directories(path(deep));
  for (const char* ending : {".bin", ".idx", ".json"})
    fs::copy_file(path("c_text_document") + ending, path(deep) + "/c" + ending,
                  fs::copy_options::overwrite_existing);
  const CommandResult shown =
      run_on_terminal(in_folder("megalith-data verify " + deep + "/c >/dev/null"), 80);
  EXPECT_EQ(shown.code, 0) << shown.out;
  EXPECT_NE(shown.out.find("verifying "), std::string::npos) << "nothing was drawn: " << shown.out;
  EXPECT_LE(longest_line(shown.out), 79u) << shown.out;
  ASSERT_EQ(train("--tokenizer-model t300 --save go --load go --exit-interval 2").code, 0);
  const CommandResult resumed = run_on_terminal(
      in_folder("megalith-pretrain --num-layers 1 --hidden-size 16 --num-attention-heads 2 --seq-length 16 "
                "--max-position-embeddings 16 --micro-batch-size 2 --train-iters 4 --lr 1e-3 --eval-iters 0 "
                "--threads 1 --data-path c_text_document --tokenizer-model t300 --load go "
                "--override-opt_param-scheduler"),
      80);
  EXPECT_EQ(resumed.code, 0) << resumed.out;
  EXPECT_NE(resumed.out.find("training  100%  4/4 steps"), std::string::npos) << resumed.out;
}

TEST_F(Newcomer, IsAnsweredAtTheFirstInterrupt) {
  const CommandResult result =
      run("megalith-pretrain --num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 64 "
          "--max-position-embeddings 64 --micro-batch-size 4 --train-iters 20000 --log-interval 5 --lr 1e-3 "
          "--eval-iters 0 --threads 1 "
          "--data-path c_text_document --tokenizer-model t300 --log-json i.jsonl >out 2>err & a=$!; "
          "until grep -q '\"train\"' i.jsonl 2>/dev/null || ! kill -0 $a; do sleep 0.05; done; kill -INT $a; "
          "wait $a; "
          "echo $?");
  EXPECT_EQ(result.out, "75\n");
  EXPECT_NE(read_file(path("err"))
                .find("stopping as soon as the current work is complete; Ctrl-C again stops at once"),
            std::string::npos)
      << read_file(path("err"));
}

TEST_F(Newcomer, RunsOneProcessAFolderOfCheckpoints) {
  ASSERT_EQ(train("--tokenizer-model t300 --save held").code, 0);
  const CommandResult result =
      run("megalith-pretrain --num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 64 "
          "--max-position-embeddings 64 --micro-batch-size 4 --train-iters 20000 --log-interval 5 --lr 1e-3 "
          "--eval-iters 0 --threads 1 "
          "--data-path c_text_document --tokenizer-model t300 --log-json h.jsonl --save held "
          "--overwrite-output-dir >/dev/null 2>&1 "
          "& a=$!; "
          "until grep -q '\"train\"' h.jsonl 2>/dev/null || ! kill -0 $a; do sleep 0.05; done; "
          "megalith-pretrain --num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 64 "
          "--max-position-embeddings 64 --micro-batch-size 4 --train-iters 1 --lr 1e-3 --eval-iters 0 "
          "--threads 1 "
          "--data-path c_text_document --tokenizer-model t300 --save held --overwrite-output-dir >second "
          "2>&1; echo $?; grep -c "
          "\"$a\" second; "
          "kill -TERM $a; wait $a; true");
  EXPECT_EQ(result.out, "75\n1\n") << read_file(path("second"));
}

TEST_F(Newcomer, GetsOpenMpThreadsThatSleepUnlessItSaysOtherwise) {
  if (kClang) GTEST_SKIP() << "libomp shows no number of spins";
  const auto policy = [](const std::string& before) {
    const std::string shown = run("OMP_DISPLAY_ENV=verbose " + before +
                                  " megalith-pretrain --num-layers 2 2>&1 | "
                                  "grep GOMP_SPINCOUNT | tail -n 1")
                                  .out;
    return shown;
  };
  EXPECT_NE(policy("env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT").find(" = '1000'"), std::string::npos);
  EXPECT_EQ(policy("env -u GOMP_SPINCOUNT OMP_WAIT_POLICY=active").find(" = '1000'"), std::string::npos);
  EXPECT_NE(policy("env -u OMP_WAIT_POLICY GOMP_SPINCOUNT=1234").find(" = '1234'"), std::string::npos);
}

}  // namespace
}  // namespace megalith::test
