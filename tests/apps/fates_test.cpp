// Tests what each program does with other tools' options: as the table libcore/dialects/megatron/fates.cpp
// says, on the command line and in a file of --config alike, and as the pages of docs/ describe.
#include "libcore/dialects/megatron/fates.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/dialects/mindformers/keys.h"
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

/// A program that accepts other tools' options, and a command with which it gets far enough to log them.
struct Reader {
  std::string app;
  unsigned program = 0;
  std::string command = {};
  std::string kind = {};  // lines of a config file that make all fates apply
};
void PrintTo(const Reader& reader, std::ostream* out) {
  *out << reader.app;
}

const std::string kModel =
    " --num-layers 2 --hidden-size 64 --num-attention-heads 2 --seq-length 32 --vocab-size 100";
const Reader kReaders[] = {
    {"pretrain", kPretrain, kModel + " --micro-batch-size 1 --train-iters 1 --lr 1e-3 --mock-data --dry-run"},
    {"finetune", kFinetune, " --model none --output-dir out"},
    {"autoplan", kAutoplan, kModel + " --world-size 1 --gpu h100 --global-batch-size 8",
     "num-experts: 8\nfp8-format: hybrid\n"},
    {"preprocess", kPreprocess, " --input none --output-prefix none"},
    {"merge", kMerge, " --input none --output-prefix none"}};

std::vector<Reader> programs() {
  std::vector<Reader> all(std::begin(kReaders), std::end(kReaders));
  for (const auto& entry : std::filesystem::directory_iterator(MEGALITH_SOURCE_DIR "/apps"))
    if (const std::string name = entry.path().filename().string(); entry.is_directory())
      if (std::none_of(all.begin(), all.end(), [&](const Reader& one) { return one.app == name; }))
        all.push_back({name});
  return all;
}

/// A name that the row matches; for a row of a family of options, a name that no tool uses.
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

/// Reads from a program's output how it treated each name. `before` is the text before a name: "--", or ": "
/// for a file.
Meetings met(const std::string& said, const std::set<std::string>& names, const std::string& before) {
  Meetings all;
  const std::string unknown = before == "--" ? "--" : "";
  for (const std::string& name : names)
    all[name] = said.find(before + name + " is not supported; ") != std::string::npos        ? Met::kRefused
                : said.find("unknown option \"" + unknown + name + '"') != std::string::npos ? Met::kUnknown
                                                                                             : Met::kTaken;
  return all;
}

/// The lines of a config file with which every fate of the program's options applies.
std::string kind_of(const std::string& app) {
  for (const Reader& reader : kReaders)
    if (reader.app == app) return reader.kind;
  return "";
}

/// How the program treats the names on its command line. `value` follows each name: "=x", or "" for none.
Meetings met_on_command_line(const std::string& name_of_app, const std::set<std::string>& names,
                             const std::string& value = "=x") {
  const test::TempDir dir;
  const std::string kind = kind_of(name_of_app);
  write_file(dir / "kind.yaml", kind);
  std::string line = app(name_of_app) + (kind.empty() ? "" : " --config " + (dir / "kind.yaml"));
  for (const std::string& name : names) line += " --" + name + value;
  const auto result = run_command(line);
  EXPECT_EQ(result.code, 64) << result.err;
  return met(result.err, names, "--");
}

Meetings met_in_file(const std::string& name_of_app, const std::set<std::string>& names,
                     const std::string& value = "x") {
  const test::TempDir dir;
  std::string text = kind_of(name_of_app);
  for (const std::string& name : names) text += name + ": " + value + "\n";
  write_file(dir / "fates.yaml", text);
  const auto result = run_command(app(name_of_app) + " --config " + (dir / "fates.yaml"));
  EXPECT_EQ(result.code, 64) << result.err;
  return met(result.err, names, ": ");
}

/// Describes how `found` differs from `wanted`: "-missing +added". (A failure prints sets of hundreds of
/// names only in part.)
std::string difference(const std::set<std::string>& wanted, const std::set<std::string>& found) {
  std::string text;
  for (const std::string& name : wanted)
    if (!found.contains(name)) text += concat(" -", name);
  for (const std::string& name : found)
    if (!wanted.contains(name)) text += concat(" +", name);
  return text;
}

/// Whether a name is a key of MindFormers' run files. A program that reads such files accepts the key in a
/// file, even if it has no such option.
bool is_run_key(const std::string& name) {
  return std::any_of(run_keys().begin(), run_keys().end(),
                     [&](const RunKey& key) { return option_key(key.name) == name; });
}

class FatesOf : public testing::TestWithParam<Reader> {};

TEST_P(FatesOf, EachNameAreTheSameOnTheCommandLineAndInAFile) {
  const std::set<std::string> names = all_names();
  const Meetings line = met_on_command_line(GetParam().app, names), file = met_in_file(GetParam().app, names);
  for (const std::string& name : names) {
    if (GetParam().program != 0 || !is_run_key(name)) {
      EXPECT_EQ(line.at(name), file.at(name)) << name;
    }
    if (const ForeignOption* row = row_of(GetParam().program, name)) {
      EXPECT_EQ(line.at(name), row->remedy.empty() ? Met::kTaken : Met::kRefused) << name;
    }
  }
}

// A flag must have the same fate in all its forms. (An earlier version refused `--fp8-wgrad` but accepted
// `--fp8-wgrad true`.)
TEST_P(FatesOf, EachFlagAreTheSameInAllItsForms) {
  std::set<std::string> names = all_names();
  std::erase_if(names, [&](const std::string& name) {
    return !row_of(GetParam().program, name) || row_of(GetParam().program, name)->remedy.empty();
  });
  if (names.empty()) GTEST_SKIP() << "no option of another tool is refused";
  const std::string& of = GetParam().app;
  const Meetings bare = met_on_command_line(of, names, ""), on = met_on_command_line(of, names, "=true"),
                 on_in_file = met_in_file(of, names, "true"), off = met_on_command_line(of, names, "=false"),
                 off_in_file = met_in_file(of, names, "false");
  for (const std::string& name : names) {
    const std::string_view plain = row_of(GetParam().program, name)->plain;
    EXPECT_EQ(bare.at(name), plain == "true" ? Met::kTaken : Met::kRefused) << name;
    EXPECT_EQ(on.at(name), bare.at(name)) << name;
    EXPECT_EQ(on_in_file.at(name), bare.at(name)) << name;
    EXPECT_EQ(off.at(name), off_in_file.at(name)) << name;
    if (plain.empty()) {
      EXPECT_EQ(off.at(name), Met::kTaken) << name;
    }
  }
}

// An ignored option takes the values that it has in its own tool, on the command line and in a file alike.
// (An earlier version accepted any word and any list in a file.)
TEST_P(FatesOf, IgnoredOptionsWantTheirValues) {
  const test::TempDir dir;
  std::string line, keys;
  std::vector<std::string> wanted_of_line, wanted_of_file;
  for (const std::string& name : all_names()) {
    const ForeignOption* const row = row_of(GetParam().program, name);
    if (!row || !row->remedy.empty() || row->values == OptionFate::kSeveral) continue;
    const bool flag = row->values != OptionFate::kOne;
    line += " --" + name + (flag ? "=foo" : " a b");
    if (flag) wanted_of_line.push_back("--" + name + " \"foo\": wanted true or false\n");
    if (is_run_key(name)) continue;  // in a file, the key is MindFormers'
    keys += name + (flag ? ": foo\n" : ": [a, b]\n");
    wanted_of_file.push_back(": " + name +
                             (flag ? " \"foo\": wanted true or false\n" : " \"a b\": wanted one value\n"));
  }
  if (keys.empty()) GTEST_SKIP() << "it ignores no such option";
  write_file(dir / "keys.yaml", keys);
  const std::string program = app(GetParam().app);
  const auto on_line = run_command(program + line),
             in_file = run_command(program + " --config " + (dir / "keys.yaml"));
  EXPECT_EQ(on_line.code, 64);
  EXPECT_EQ(in_file.code, 64);
  for (const std::string& wanted : wanted_of_line)
    EXPECT_NE(on_line.err.find(wanted), std::string::npos) << wanted;
  for (const std::string& wanted : wanted_of_file)
    EXPECT_NE(in_file.err.find(wanted), std::string::npos) << wanted;
}

TEST_P(FatesOf, WhatChangesNothingIsNamedInTheLog) {
  const test::TempDir dir;
  std::string line, keys;
  std::set<std::string> wanted;
  for (const std::string& name : all_names())
    if (const ForeignOption* row = row_of(GetParam().program, name); row && row->remedy.empty()) {
      wanted.insert(name);
      line += " --" + name + (row->values == OptionFate::kNone ? "" : " 1");
      keys += name + ": 1\n";
    }
  if (wanted.empty()) GTEST_SKIP() << "every option of another tool that it knows changes something";
  write_file(dir / "keys.yaml", keys);
  const auto named = [&](const std::string& more) {
    const auto result = run_command(app(GetParam().app) + GetParam().command + more);
    const std::string all = result.out + result.err, head = "ignored, no effect here: ";
    const size_t at = all.find(head);
    if (at == std::string::npos) return std::set<std::string>{"nothing: " + all};
    std::set<std::string> names;
    std::istringstream words(all.substr(at + head.size(), all.find('\n', at) - at - head.size()));
    for (std::string word; words >> word;) names.insert(word.substr(word.starts_with("--") ? 2 : 0));
    return names;
  };
  EXPECT_EQ(difference(wanted, named(line)), "");
  EXPECT_EQ(difference(wanted, named(" --config " + (dir / "keys.yaml"))), "");
}

// The fate of some options depends on the run that is planned, exactly as for a log
// (tests/plan/log/run_log_test.cpp).
TEST(Fates, DependOnTheRunThatIsPlanned) {
  const auto code = [](const std::string& options) {
    return run_command(app("autoplan") + kReaders[2].command + options).code;
  };
  EXPECT_EQ(code(" --moe-pad-expert-input-to-capacity"), 0);
  EXPECT_EQ(code(" --moe-pad-expert-input-to-capacity --num-experts 8 --moe-ffn-hidden-size 64"), 64);
  EXPECT_EQ(code(" --encoder-num-layers 2 --encoder-seq-length 32"), 0);
  EXPECT_EQ(code(" --encoder-num-layers 3"), 64);
  EXPECT_EQ(code(" --no-fp8-wgrad"), 0);
  EXPECT_EQ(code(" --no-fp8-wgrad --fp8-format hybrid"), 64);
  const std::string group = " --microbatch-group-size-per-virtual-pipeline-stage 1";
  EXPECT_EQ(code(group), 64) << "the pipeline is searched";
  EXPECT_EQ(code(group + " --pipeline-model-parallel-size 1"), 0);
  const std::string pipeline =
      kModel +
      " --num-layers 4 --world-size 2 --gpu h100 --global-batch-size 8 --pipeline-model-parallel-size 2";
  const auto grouped = [&](const std::string& size) {
    return run_command(app("autoplan") + pipeline + " --microbatch-group-size-per-virtual-pipeline-stage " +
                       size)
        .code;
  };
  EXPECT_EQ(grouped("2"), 0);
  EXPECT_EQ(grouped("4"), 64);
}

// Logs can be priced only with some values of these options. The other values are refused on the command
// line, too.
TEST(Fates, OfALogAreThoseOfThePlannersOptions) {
  for (const char* options :
       {" --fp8-recipe other --fp8-format hybrid", " --num-distributed-optimizer-instances 2",
        " --optimizer sgd", " --rampup-batch-size 4 4 100"})
    EXPECT_EQ(run_command(app("autoplan") + kReaders[2].command + options).code, 64) << options;
}

INSTANTIATE_TEST_SUITE_P(Program, FatesOf, testing::ValuesIn(programs()), [](const auto& test) {
  std::string name = test.param.app;
  std::erase(name, '-');
  return name;
});

/// A row of a table in a page: the flags in its first cell ("merge: `--x`" means an option of
/// megalith-merge), and the cell that states their fate.
struct PageRow {
  std::string program;  // empty: the program that the page describes
  std::set<std::string> flags;
  std::string fate;
};

/// The options that a cell has in backticks. An option with a value ("--sharding stage3") means only that
/// value.
std::set<std::string> flags_of(const std::string& cell) {
  std::set<std::string> flags;
  const std::vector<std::string> parts = split(cell, '`');
  for (size_t i = 1; i < parts.size(); i += 2)
    if (parts[i].starts_with("--") && parts[i].find_first_of(" *") == std::string::npos)
      flags.insert(option_key(parts[i].substr(2)));
  return flags;
}

std::string program_of(const std::string& cell) {
  const size_t colon = cell.find(": `");
  return colon == std::string::npos ? "" : std::string(trim(cell.substr(0, colon)));
}

/// The rows of those tables of the page whose header has the cell `heading`.
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
      rows.push_back({program_of(cells[1]), flags_of(cells[1]), std::string(trim(cells.at(at)))});
  }
  return rows;
}

struct Page {
  std::string app, page, heading, column = "state";
};

void PrintTo(const Page& page, std::ostream* out) {
  *out << page.page << ", " << page.heading;
}

class FatesOfPage : public testing::TestWithParam<Page> {};

unsigned program_called(const std::string& app) {
  for (const Reader& reader : kReaders)
    if (reader.app == app) return reader.program;
  return 0;
}

void expect_fate(const std::string& app, const std::string& flag, const std::string& stated, Met met) {
  SCOPED_TRACE(app + " --" + flag);
  const std::vector<OptionFate> fates = fates_in(static_cast<Program>(program_called(app)));
  if (stated == "refused") {
    EXPECT_EQ(met, Met::kRefused);
  } else if (stated == "not yet") {
    EXPECT_EQ(met, Met::kUnknown);
  } else {
    EXPECT_EQ(met, Met::kTaken) << stated;
    EXPECT_TRUE(!stated.starts_with("obeyed") || find_fate(fates, flag) == nullptr);
  }
}

TEST_P(FatesOfPage, AreThoseOfTheProgram) {
  const auto& [app, page, heading, column] = GetParam();
  const std::vector<PageRow> rows = page_rows(page, heading, column);
  ASSERT_GT(rows.size(), 8U);
  std::map<std::string, std::set<std::string>> flags;
  for (const PageRow& row : rows)
    flags[row.program.empty() ? app : row.program].insert(row.flags.begin(), row.flags.end());
  std::map<std::string, Meetings> met;
  for (const auto& [program, named] : flags) met[program] = met_on_command_line(program, named);
  for (const PageRow& row : rows) {
    const std::string program = row.program.empty() ? app : row.program;
    for (const std::string& flag : row.flags) expect_fate(program, flag, row.fate, met.at(program).at(flag));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Docs, FatesOfPage,
    testing::Values(Page{"preprocess", "from-megatron.md", "preprocess_data.py and merge_datasets.py"},
                    Page{"pretrain", "from-paddlenlp.md", "Every flag of run_pretrain.py"},
                    Page{"finetune", "from-paddlenlp.md", "finetune_generation.py"},
                    Page{"autoplan", "from-dlc.md", "Every flag", "megalith-autoplan"},
                    Page{"pretrain", "from-dlc.md", "Every flag", "megalith-pretrain"},
                    Page{"pretrain", "from-codeparrot.md", "Every flag"}),
    [](const auto& test) { return concat(test.param.app, test.index); });

}  // namespace
}  // namespace megalith
