#include "libcore/json/foreign_input.h"

#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

std::string form_of(const std::string& head, DocumentFault fault = DocumentFault::kSyntax,
                    bool plain_text = false) {
  return other_form(
      {.path = "in/a.b", .fault = fault, .record = head, .head = head, .plain_text = plain_text});
}

void expect_form(const std::string& head, const std::string& part,
                 DocumentFault fault = DocumentFault::kSyntax) {
  EXPECT_NE(form_of(head, fault).find(part), std::string::npos) << head << ": " << form_of(head, fault);
}

TEST(OtherForm, IsKnownByTheFirstBytes) {
  expect_form("Call me Ishmael.\nSome years ago", "plain text; read it with --text file");
  expect_form("\xEF\xBB\xBF\n  Call me", "plain text");
  expect_form("12 monkeys", "plain text", DocumentFault::kTrailing);
  expect_form("[Verse 1]\nAh", "plain text");
  expect_form("Hello, world\nHow, are you", "plain text");
  expect_form("{\n  \"text\": \"a\"\n}\n", "`jq -c . < in/a.b > in/a.lines.jsonl`");
  expect_form("\n {\"text\":\n\"a\"}", "`jq -c .");
  expect_form("id,text\n1,\"a, b\"\n", "delimiter=\",\")]' < in/a.b > in/a.jsonl`");
  expect_form("\"id\",\"the text\"\r\n1,a\r\n", "delimiter=\",\"");
  expect_form("id\ttext\n1\ta\n", "delimiter=\"\\t\"");
  expect_form("id;text\n1;a\n", "delimiter=\";\"");
  expect_form(std::string("\xFF\xFEH\0i\0", 6), "`iconv -f utf-16 -t utf-8 < in/a.b > in/a.utf8.b`",
              DocumentFault::kInvalidUtf8);
  expect_form(std::string("{\0\"\0t\0", 6), "iconv -f utf-16le -t utf-8");
  expect_form(std::string("\0{\0\"\0t", 6), "iconv -f utf-16be -t utf-8");
}

TEST(OtherForm, IsNotAssumedWhereTheInputMayBeWhatWasWanted) {
  for (const char* head : {"", "{\"text\": 1", "{\"a\":1}\n{\"a\" 2}\n", "[{\"a\" 1}]", "[1 2]", "[]x",
                           "\x89PNG\r\n\x1A\n", "{bad}"})
    EXPECT_EQ(form_of(head), "") << head;
  EXPECT_EQ(form_of("\"a string\"", DocumentFault::kNotObject), "");
  EXPECT_EQ(form_of("id,text\n1,a\n", DocumentFault::kInvalidUtf8, true), "");
  EXPECT_NE(form_of(std::string("\xFE\xFF\0H", 4), DocumentFault::kInvalidUtf8, true), "");
}

// What it is in depends on what lies at the path, not on how that is called.
TEST(OtherForm, IsParquetWhereItCannotBeRead) {
  const test::TempDir dir;
  const auto advice = [](const std::string& path) {
    return other_form({.path = path, .fault = DocumentFault::kInvalidUtf8, .head = "PAR1\x15"});
  };
  write_file(dir / "packed", "\x1f\x8b");  // gzip
  write_file(dir / "rows", "PAR1");
  EXPECT_EQ(advice(dir / "packed"),
            "it is Parquet in a compressed file; write it to a file of its own, uncompressed, and name that");
  ASSERT_EQ(::mkfifo((dir / "a.parquet.gz").c_str(), 0600), 0);
  for (const std::string& path : {std::string("-"), dir / "a.parquet.gz"})
    EXPECT_EQ(advice(path),
              "it is Parquet in a pipe; write it to a file of its own, uncompressed, and name that");
  for (const std::string& object : {std::string("s3://corpus/rows"), dir / "rows"})  // by `cat {}`
    EXPECT_EQ(advice(object),
              "it is Parquet; give the object a name that ends with .parquet, and let the command write it "
              "uncompressed");
}

TEST(OtherForm, IsConvertedInAPipeWhereThereIsNoPlainFile) {
  for (const char* path : {"-", "a.csv.gz"})
    EXPECT_NE(other_form({.path = path, .fault = DocumentFault::kSyntax, .head = "{\n"})
                  .find("`jq -c .` in a pipe"),
              std::string::npos);
  EXPECT_NE(other_form({.path = "my notes.json", .fault = DocumentFault::kSyntax, .head = "{\n"})
                .find("`jq -c . < \"my notes.json\" > \"my notes.lines.jsonl\"`"),
            std::string::npos);
}

std::string encoding_of(const std::string& record, size_t byte) {
  return other_encoding(
      {.path = "a.txt", .fault = DocumentFault::kInvalidUtf8, .byte = byte, .record = record});
}

TEST(OtherEncoding, IsNamedWhereTheBytesLookLikeIt) {
  EXPECT_EQ(encoding_of("caf\xE9 au lait", 3),
            "it looks like Latin-1; convert it with `iconv -f latin1 -t utf-8 < a.txt > a.utf8.txt`");
  EXPECT_NE(encoding_of("\xFC", 0).find("latin1"), std::string::npos);
  EXPECT_NE(encoding_of("na\xEFve \x93quoted\x94", 2).find("cp1252"), std::string::npos);
  EXPECT_EQ(encoding_of("\xC3\xA9t\xE9", 3), "");     // UTF-8 before it
  EXPECT_EQ(encoding_of("\xC4\xE3\xBA\xC3", 0), "");  // GBK
  EXPECT_EQ(encoding_of("\x1B\x8B"
                        "a",
                        1)
                .find("latin1"),
            std::string::npos);
}

TEST(CheckText, FindsWhatIsNotUtf8) {
  EXPECT_FALSE(check_text("a\xC3\xA9\n"));
  EXPECT_FALSE(check_text(""));
  EXPECT_FALSE(check_text(std::string("a\0bc", 4)));
  EXPECT_EQ(check_text("ab\xFF")->byte, 2U);
  EXPECT_EQ(check_text(std::string("a\0b\0", 4))->fault, DocumentFault::kInvalidUtf8);
}

}  // namespace
}  // namespace megalith
