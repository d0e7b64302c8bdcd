// What happens to other tools' options in each program: the table libcore/dialects/megatron/fates.cpp, on the
// command line and in a file of --config alike, and as the pages of docs/ describe it.
#include "libcore/dialects/megatron/fates.h"

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/options/fields.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using test::app;
using test::run_command;

enum class Met { kTaken, kRefused, kUnknown };
void PrintTo(Met met, std::ostream* out) {
  *out << (met == Met::kTaken ? "taken" : met == Met::kRefused ? "refused" : "unknown");
}
using Meetings = std::map<std::string, Met>;

/// The programs that treat other tools' options, each with a command that gets as far as logging them.
struct Reader {
  std::string app;
  unsigned program = 0;
  std::string command = {};
};
const std::string kModel =
    " --num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 32 --vocab-size 100";
const Reader kReaders[] = {
    {"pretrain", kPretrain, kModel + " --micro-batch-size 1 --train-iters 1 --lr 1e-3 --mock-data --dry-run"},
    {"finetune", kFinetune, " --model none --output-dir none"},
    {"autoplan", kAutoplan, kModel + " --world-size 1 --gpu h100 --global-batch-size 8"},
    {"preprocess", kPreprocess, " --input none --output-prefix none"}};

std::vector<Reader> programs() {
  std::vector<Reader> all(std::begin(kReaders), std::end(kReaders));
  for (const auto& entry : std::filesystem::directory_iterator(MEGALITH_SOURCE_DIR "/apps"))
    if (const std::string name = entry.path().filename().string(); entry.is_directory())
      if (std::none_of(all.begin(), all.end(), [&](const Reader& one) { return one.app == name; }))
        all.push_back({name});
  return all;
}

/// A name that the row matches; for a family one that no tool has.
std::string name_of(const ForeignOption& option) {
  std::string name(option.name);
  if (name.ends_with('*')) name.replace(name.size() - 1, 1, "unheard-of");
  return name;
}

std::set<std::string> all_names() {
  std::set<std::string> names;
  for (const ForeignOption& option : foreign_options()) names.insert(name_of(option));
  return names;
}

const ForeignOption* row_of(unsigned program, const std::string& name) {
  for (const ForeignOption& option : foreign_options())
    if ((option.programs & program) != 0 && name_of(option) == name) return &option;
  return nullptr;
}

/// What a program says about these names; `before` is the text that precedes each: "--", or ": " in a file.
Meetings met(const std::string& said, const std::set<std::string>& names, const std::string& before) {
  Meetings all;
  const std::string unknown = before == "--" ? "--" : "";
  for (const std::string& name : names)
    all[name] = said.find(before + name + " is not supported; ") != std::string::npos        ? Met::kRefused
                : said.find("unknown option \"" + unknown + name + '"') != std::string::npos ? Met::kUnknown
                                                                                             : Met::kTaken;
  return all;
}

Meetings met_on_command_line(const std::string& name_of_app, const std::set<std::string>& names) {
  std::string line = app(name_of_app);
  for (const std::string& name : names) line += " --" + name + "=x";
  const auto result = run_command(line);
  EXPECT_EQ(result.code, 64) << result.err;
  return met(result.err, names, "--");
}

Meetings met_in_file(const std::string& name_of_app, const std::set<std::string>& names) {
  const test::TempDir dir;
  std::string text;
  for (const std::string& name : names) text += name + ": x\n";
  write_file(dir / "fates.yaml", text);
  const auto result = run_command(app(name_of_app) + " --config " + (dir / "fates.yaml"));
  EXPECT_EQ(result.code, 64) << result.err;
  return met(result.err, names, ": ");
}

class FatesOf : public testing::TestWithParam<Reader> {};

TEST_P(FatesOf, EachNameAreTheSameOnTheCommandLineAndInAFile) {
  const std::set<std::string> names = all_names();
  const Meetings line = met_on_command_line(GetParam().app, names), file = met_in_file(GetParam().app, names);
  for (const std::string& name : names) {
    EXPECT_EQ(line.at(name), file.at(name)) << name;
    if (const ForeignOption* row = row_of(GetParam().program, name)) {
      EXPECT_EQ(line.at(name), row->remedy.empty() ? Met::kTaken : Met::kRefused) << name;
    }
  }
}

TEST_P(FatesOf, WhatChangesNothingIsNamedInTheLog) {
  if (GetParam().program == 0) GTEST_SKIP() << "reads no other tool's options";
  const test::TempDir dir;
  std::string line, keys;
  std::set<std::string> wanted;
  for (const std::string& name : all_names())
    if (const ForeignOption* row = row_of(GetParam().program, name); row && row->remedy.empty()) {
      wanted.insert(name);
      line += " --" + name + (row->values == OptionFate::kNone ? "" : " 1");
      keys += name + ": 1\n";
    }
  write_file(dir / "keys.yaml", keys);
  const auto named = [&](const std::string& more) {
    const auto result = run_command(app(GetParam().app) + GetParam().command + more);
    const std::string all = result.out + result.err, head = "ignored, no meaning here: ";
    const size_t at = all.find(head);
    if (at == std::string::npos) return std::set<std::string>{"nothing: " + all};
    std::set<std::string> names;
    std::istringstream words(all.substr(at + head.size(), all.find('\n', at) - at - head.size()));
    for (std::string word; words >> word;) names.insert(word.substr(word.starts_with("--") ? 2 : 0));
    return names;
  };
  EXPECT_EQ(named(line), wanted);
  EXPECT_EQ(named(" --config " + (dir / "keys.yaml")), wanted);
}

INSTANTIATE_TEST_SUITE_P(Program, FatesOf, testing::ValuesIn(programs()), [](const auto& test) {
  std::string name = test.param.app;
  std::erase(name, '-');
  return name;
});

/// A row of a page's table: the flags in its first cell, and the cell that states their fate.
struct PageRow {
  std::set<std::string> flags;
  std::string fate;
};

/// The options in backticks; one with a value ("--sharding stage3") refers only to that value.
std::set<std::string> flags_of(const std::string& cell) {
  std::set<std::string> flags;
  const std::vector<std::string> parts = split(cell, '`');
  for (size_t i = 1; i < parts.size(); i += 2)
    if (parts[i].starts_with("--") && parts[i].find_first_of(" *") == std::string::npos)
      flags.insert(option_key(parts[i].substr(2)));
  return flags;
}

/// The tables of a page whose header contains this cell, and the rows' cells below it.
std::vector<PageRow> page_rows(const std::string& page, const std::string& heading,
                               const std::string& column) {
  std::vector<PageRow> rows;
  std::istringstream text(read_file(concat(MEGALITH_SOURCE_DIR "/docs/", page)));
  size_t at = 0;
  bool within = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("## ")) within = line == "## " + heading;
    const std::vector<std::string> cells = split(line, '|');
    if (!within || cells.size() < 4 || line.starts_with("|---")) continue;
    if (trim(cells[1]) == "flag")
      for (at = 2; at < cells.size() && trim(cells[at]) != column;) ++at;
    else
      rows.push_back({flags_of(cells[1]), std::string(trim(cells.at(at)))});
  }
  return rows;
}

struct Page {
  std::string app, page, heading, column = "fate";
};

class FatesOfPage : public testing::TestWithParam<Page> {};

TEST_P(FatesOfPage, AreThoseOfTheProgram) {
  const auto& [name, page, heading, column] = GetParam();
  unsigned program = 0;
  for (const Reader& reader : kReaders)
    if (reader.app == name) program = reader.program;
  std::set<std::string> flags;
  const std::vector<PageRow> rows = page_rows(page, heading, column);
  for (const PageRow& row : rows) flags.insert(row.flags.begin(), row.flags.end());
  ASSERT_GT(flags.size(), 8U);
  const Meetings line = met_on_command_line(name, flags);
  for (const PageRow& row : rows)
    for (const std::string& flag : row.flags) {
      SCOPED_TRACE(flag);
      const std::vector<OptionFate> fates = fates_in(static_cast<Program>(program));
      const OptionFate* const fate = find_fate(fates, flag);
      if (row.fate == "refused") {
        EXPECT_EQ(line.at(flag), Met::kRefused);
      } else if (row.fate == "not yet") {
        EXPECT_EQ(line.at(flag), Met::kUnknown);
      } else if (row.fate.starts_with("obeyed")) {
        EXPECT_TRUE(line.at(flag) == Met::kTaken && !fate);
      } else {
        EXPECT_EQ(line.at(flag), Met::kTaken) << row.fate;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(
    Docs, FatesOfPage,
    testing::Values(Page{"preprocess", "from-megatron.md", "preprocess_data.py and merge_datasets.py"},
                    Page{"pretrain", "from-paddlenlp.md", "Every flag of run_pretrain.py"},
                    Page{"finetune", "from-paddlenlp.md", "finetune_generation.py"},
                    Page{"autoplan", "from-dlc.md", "Every flag", "megalith-autoplan"},
                    Page{"pretrain", "from-dlc.md", "Every flag", "megalith-pretrain"}),
    [](const auto& test) { return concat(test.param.app, test.index); });

}  // namespace
}  // namespace megalith
