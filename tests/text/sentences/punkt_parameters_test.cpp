#include "libcore/text/sentences/punkt_parameters.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

const std::string kModel = "text/goldens/punkt/tokenizers/punkt_tab/english";

TEST(PunktParameters, AreThoseOfTheFiles) {
  const PunktParameters found = read_punkt_parameters(test::test_data(kModel));
  EXPECT_EQ(found.abbreviations.size(), 28U);  // as counted by the script
  EXPECT_EQ(found.sentence_starters.size(), 6U);
  EXPECT_EQ(found.collocations.size(), 97U);
  EXPECT_EQ(found.contexts.size(), 90U);
  EXPECT_TRUE(found.abbreviations.contains("π.χ"));
  EXPECT_TRUE(found.sentence_starters.contains("yesterday"));  // the last line, which has no line end
  EXPECT_TRUE(found.collocations.contains("z.b\tist"));
  EXPECT_EQ(found.hash.size(), 64U);
}

class PunktFolder : public testing::Test {
 protected:
  PunktFolder() {
    fs::create_directories(dir_.path() / "tokenizers/punkt_tab");
    fs::copy(test::test_data(kModel), model());
  }
  std::string model() const { return dir_ / "tokenizers/punkt_tab/klingon"; }
  void expect_error(ErrorKind kind, const std::string& message) const {
    try {
      read_punkt_parameters(find_punkt_folder("klingon"));
      ADD_FAILURE() << "no error, wanted " << message;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
  test::TempDir dir_;
  test::Variable home_{"HOME", dir_ / "home"};
};

TEST_F(PunktFolder, IsFoundWhereNltkLooks) {
  const test::Variable data("NLTK_DATA", ":/absent:" + dir_.path().string());
  EXPECT_EQ(find_punkt_folder("klingon"), model());
  {
    const test::Variable none("NLTK_DATA", "");
    expect_error(ErrorKind::kNoInput, "no Punkt model of \"klingon\"");
    expect_error(ErrorKind::kNoInput, dir_ / "home/nltk_data, ");
    fs::create_directories(dir_.path() / "home");
    fs::create_directory_symlink(dir_.path(), dir_.path() / "home/nltk_data");
    EXPECT_EQ(find_punkt_folder("klingon"), dir_ / "home/nltk_data/tokenizers/punkt_tab/klingon");
    fs::remove(dir_.path() / "home/nltk_data");
    const test::Variable python("VIRTUAL_ENV", dir_ / "venv");
    fs::create_directories(dir_.path() / "venv/share");
    fs::create_directory_symlink(dir_.path(), dir_.path() / "venv/share/nltk_data");
    EXPECT_EQ(find_punkt_folder("klingon"), dir_ / "venv/share/nltk_data/tokenizers/punkt_tab/klingon");
  }
  fs::create_directory_symlink(dir_.path(), dir_.path() / "home/here");
  const test::Variable at_home("NLTK_DATA", "~/here");
  EXPECT_EQ(find_punkt_folder("klingon"), dir_ / "home/here/tokenizers/punkt_tab/klingon");
}

TEST_F(PunktFolder, IsToldWhatIsThereInstead) {
  const test::Variable data("NLTK_DATA", dir_.path().string());
  fs::remove_all(model());
  expect_error(ErrorKind::kNoInput, "python3 -m nltk.downloader punkt_tab");
  fs::create_directories(dir_.path() / "tokenizers/punkt");
  write_file(dir_ / "tokenizers/punkt/klingon.pickle", "x");
  expect_error(ErrorKind::kNoInput, "klingon.pickle exists, but only punkt_tab models can be read");
  write_file(dir_ / "tokenizers/punkt_tab.zip", "x");
  expect_error(ErrorKind::kNoInput, "punkt_tab.zip exists, but is packed");
}

TEST_F(PunktFolder, IsNoPath) {
  for (const char* name : {"", "../english", "a/b", "."})
    EXPECT_THROW(find_punkt_folder(name), Error) << name;
}

TEST_F(PunktFolder, IsRefusedWhenDamaged) {
  const test::Variable data("NLTK_DATA", dir_.path().string());
  const auto damage = [&](const std::string& file, const std::string& text, const std::string& message) {
    const std::string before = read_file(model() + "/" + file);
    write_file(model() + "/" + file, text);
    expect_error(ErrorKind::kData, file + message);
    write_file(model() + "/" + file, before);
  };
  damage("collocations.tab", "a\tb\nword", ":2: found \"word\", wanted two fields with a tab between them");
  damage("collocations.tab", "a\tb\tc\n", ":1: found \"a\\x09b\\x09c\"");
  for (const char* flags : {"x", "", "-2", "127", "99999999999999999999"})
    damage("ortho_context.tab", std::string("a\t2\nb\t") + flags, ":2: found \"b\\x09");
  damage("abbrev_types.txt", "dr\n\xff", ": byte 4 is not UTF-8");
  fs::remove(model() + "/sent_starters.txt");
  expect_error(ErrorKind::kNoInput, "sent_starters.txt");
}

}  // namespace
}  // namespace megalith
