#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "libcore/options/cli.h"
#include "tests/options/paint.h"
#include "tests/support/fates.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"

// Options::fates(): other tools' options that are ignored or refused (libcore/options/fate.h).
namespace megalith {
namespace {

using test::LogLines;
using test::Paint;

TEST(Options, MakeFatesOnceAnUnknownOptionIsGiven) {
  int made = 0;
  const auto make = [&made] {
    ++made;
    return std::vector<OptionFate>{{.name = "whistle"}};
  };
  const auto read = [&make](std::vector<std::string> words) {
    Paint paint;
    Options options("paint", "Paint a wall.");
    options.add("Painting", paint).fates(make);
    options.read(std::move(words));
  };
  read({"--coats", "2"});
  EXPECT_EQ(made, 0);
  read({"--whistle", "--coats", "2", "--whistle"});
  EXPECT_EQ(made, 1);
}

TEST(Options, AcceptIgnoredOptionsAndNameThemOnce) {
  Paint paint;
  Options options("paint", "Paint a wall.");
  const OptionFate ignored[] = {{.name = "ladder", .values = OptionFate::kOne},
                                {.name = "whistle"},
                                {.name = "radio", .values = OptionFate::kMaybeOne}};
  options.add("Painting", paint).fates(test::maker(ignored));
  LogLines log;
  ASSERT_FALSE(
      options.read({"--ladder", "tall", "--whistle", "w", "--radio", "1", "--no-radio", "--coats", "2"}));
  options.check();
  EXPECT_EQ(paint.wall, "w");
  EXPECT_EQ(paint.coats, 2);
  EXPECT_EQ(log.lines,
            std::vector<std::string>{"ignored, no effect here: --ladder --whistle --radio --no-radio"});
}

/// Options of another program, which the painter's program ignores.
struct Scaffold {
  std::string kind;
  int boards = 1;
  bool net = true;
  std::vector<std::string> crew;

  template <class V>
  void fields(V&& v) {
    v("kind", kind, "Kind of scaffold.", one_of({"tower", "ladder"}), alias({"type"}));
    v("boards", boards, "Boards of it.");
    v("net", net, "Hang a net around it.", opposite({"open"}));
    v("crew", crew, "Who builds it.");
  }
};
constexpr OptionFate kOfScaffolds[] = {{.name = "kind", .values = OptionFate::kOne},
                                       {.name = "type", .values = OptionFate::kOne},
                                       {.name = "boards", .values = OptionFate::kOne},
                                       {.name = "net", .values = OptionFate::kMaybeOne},
                                       {.name = "open"},
                                       {.name = "crew", .values = OptionFate::kSeveral},
                                       {.name = "whistle"}};

/// Reads a painter's command with one option that even the reader of scaffolds ignores. Returns the scaffold
/// that the ignored options describe, and the messages about it.
std::pair<Scaffold, std::string> scaffold_of(std::vector<std::string> arguments) {
  arguments.emplace_back("--whistle");
  std::pair<Scaffold, std::string> out;
  Paint paint;
  Options options("paint", "Paint a wall.");
  options.add("Painting", paint).fates(test::maker(kOfScaffolds));
  EXPECT_FALSE(options.read(arguments));
  const LogLines log;
  options.check({"Painting"});
  EXPECT_EQ(log.lines.size(), 0U) << "left to tell_ignored()";
  Problems problems;
  const std::set<std::string> taken = options.take_ignored(fields_of(out.first), problems);
  EXPECT_EQ(taken.contains("boards"), out.first.boards != 1 || !problems.empty());
  out.second = problems.text();
  options.check();
  options.tell_ignored();
  EXPECT_EQ(log.lines, std::vector<std::string>{"ignored, no effect here: --whistle"})
      << "what is obeyed is not ignored, and the rest is named once";
  return out;
}

TEST(Options, GiveIgnoredOptionsToAReaderThatHasThem) {
  const auto [words, none] =
      scaffold_of({"w", "--type", "tower", "--boards=3", "--no-net", "--crew", "Ann", "Bo", "--coats", "2"});
  EXPECT_EQ(none, "");
  EXPECT_EQ(words.kind, "tower");
  EXPECT_EQ(words.boards, 3);
  EXPECT_FALSE(words.net);
  EXPECT_EQ(words.crew, (std::vector<std::string>{"Ann", "Bo"}));
  EXPECT_EQ(scaffold_of({"w", "--crew", "Ann", "--crew", "Bo"}).first.crew, words.crew);
  EXPECT_FALSE(scaffold_of({"w", "--open"}).first.net);
  EXPECT_TRUE(scaffold_of({"w", "--open", "--net"}).first.net);
  const test::TempDir dir;
  write_file(dir / "p.yaml", "kind: ladder\nboards: 4\nnet: false\n");
  const Scaffold both = scaffold_of({"w", "--config", dir / "p.yaml", "--boards", "5"}).first;
  EXPECT_EQ(both.kind, "ladder");
  EXPECT_EQ(both.boards, 5) << "the command line has precedence";
  EXPECT_FALSE(both.net);
  EXPECT_EQ(scaffold_of({"w", "--boards", "many"}).second, "--boards \"many\": wanted an integer");
  write_file(dir / "p.yaml", "boards: many\n");
  const std::string file = dir / "p.yaml";
  EXPECT_EQ(scaffold_of({"w", "--config", file}).second, file + ":1: boards \"many\": wanted an integer");
}

/// Gives one option with a value, on the command line or in a file. Returns what the log names as ignored, or
/// the message that refuses the option.
std::string fate_of(std::span<const OptionFate> fates, const std::string& name, const std::string& value,
                    bool in_file) {
  const test::TempDir dir;
  write_file(dir / "p.yaml", name + ": " + value + '\n');
  Paint paint;
  Options options("paint", "Paint a wall.");
  options.add("Painting", paint).fates(test::maker(fates));
  const LogLines log;
  options.read(in_file ? std::vector<std::string>{"w", "--config", dir / "p.yaml"}
                       : std::vector<std::string>{"w", "--" + name, value});
  try {
    options.check();
  } catch (const Error& error) {
    const std::string said = error.what();
    return said.substr(said.find(name));
  }
  EXPECT_EQ(paint.wall, "w");
  return log.lines.empty() ? "taken" : log.lines.front().substr(log.lines.front().find(name));
}

// Regression: an ignored name may match a refused pattern. Such a name was ignored on the command line, but
// refused in a file.
TEST(Options, OfOtherToolsHaveOneFateWhereverTheyAreGiven) {
  constexpr OptionFate kFates[] = {
      {.name = "frame-*", .remedy = "leave it out"},
      {.name = "frame-width", .values = OptionFate::kOne},
      {.name = "frame-kind", .remedy = "give none", .plain = "none|plain"},
      {.name = "coats", .remedy = "a field comes first"},
      {.name = "lacquer"},
      {.name = "varnish", .values = OptionFate::kMaybeOne},
  };
  // Regression: the command line refused such values, and a file accepted them.
  EXPECT_EQ(fate_of(kFates, "lacquer", "thick", true), "lacquer \"thick\": wanted true or false");
  EXPECT_EQ(fate_of(kFates, "varnish", "7", true), "varnish \"7\": wanted true or false");
  EXPECT_EQ(fate_of(kFates, "frame-width", "[1, 2]", true), "frame-width \"1 2\": wanted one value");
  for (const bool in_file : {false, true}) {
    const auto fate = [&](const char* name, const char* value) {
      return fate_of(kFates, name, value, in_file);
    };
    EXPECT_EQ(fate("frame-width", "3"), "frame-width");
    EXPECT_EQ(fate("frame_width", "3"), "frame_width");
    EXPECT_EQ(fate("frame-depth", "3"), "frame-depth is not supported; leave it out");
    EXPECT_EQ(fate("frame-depth", "false"), "frame-depth");
    EXPECT_EQ(fate("frame-kind", "gilded"), "frame-kind is not supported; give none");
    EXPECT_EQ(fate("frame-kind", "Plain"), "frame-kind");
    EXPECT_EQ(fate("coats", "3"), "taken");
    EXPECT_EQ(fate("lacquer", "true"), "lacquer");
    EXPECT_TRUE(fate("fra", "3").starts_with("fra\"")) << "unknown";
  }
}

// Regression: such an option was refused on the command line and in a file, but accepted in a log.
TEST(Options, OfOtherToolsAreRefusedOnlyInSomeRuns) {
  constexpr OptionFate kFates[] = {
      {.name = "frame-*", .remedy = "leave it out", .only = "framed walls"},
      {.name = "layers", .remedy = "give --coats", .repeats = "coats"},
  };
  const auto said = [&](bool framed, const std::vector<std::string>& words) -> std::string {
    Paint paint;
    Options options("paint", "Paint a wall.");
    options.add("Painting", paint).fates(test::maker(kFates), [framed](std::string_view kind) {
      return kind == "framed walls" && framed;
    });
    const LogLines log;
    options.read(words);
    try {
      options.check();
    } catch (const Error& error) {
      return error.what();
    }
    return log.lines.empty() ? "" : log.lines.front();
  };
  const test::TempDir dir;
  write_file(dir / "p.yaml", "frame-width: 3\nlayers: 4\n");
  const std::string file = dir / "p.yaml";
  EXPECT_EQ(said(false, {"w", "--frame-width", "3"}), "ignored, no effect here: --frame-width");
  EXPECT_EQ(said(true, {"w", "--frame-width", "3"}), "--frame-width is not supported; leave it out");
  EXPECT_EQ(said(true, {"w", "--layers", "4", "--coats", "4"}), "ignored, no effect here: --layers");
  EXPECT_EQ(said(true, {"w", "--layers", "4", "--coats", "3"}), "--layers is not supported; give --coats");
  EXPECT_EQ(said(true, {"w", "--layers", "4"}), "--layers is not supported; give --coats");
  EXPECT_EQ(said(false, {"w", "--config", file, "--coats", "4"}),
            "ignored, no effect here: frame-width layers");
  EXPECT_EQ(said(true, {"w", "--config", file, "--coats", "3"}),
            file + ":1: frame-width is not supported; leave it out\n  " + file +
                ":2: layers is not supported; give --coats");
}

TEST(Options, OfOtherToolsTakeTheirWordsOnTheCommandLineAsInAFile) {
  constexpr OptionFate kFates[] = {{.name = "varnish"},
                                   {.name = "gloss", .values = OptionFate::kMaybeOne},
                                   {.name = "sheen", .values = OptionFate::kOne},
                                   {.name = "tints", .values = OptionFate::kSeveral}};
  const auto taken = [&](std::vector<std::string> words) -> std::string {
    Paint paint;
    Options options("paint", "Paint a wall.");
    options.add("Painting", paint).fates(test::maker(kFates));
    const LogLines log;
    words.insert(words.begin(), "w");
    options.read(words);
    try {
      options.check();
    } catch (const Error& error) {
      return error.what();
    }
    return paint.wall;
  };
  EXPECT_EQ(taken({"--varnish", "true", "--varnish", "0", "--gloss", "false", "--gloss", "--varnish"}), "w");
  EXPECT_EQ(taken({"--sheen", "3", "--tints", "a", "b"}), "w");
  EXPECT_EQ(taken({"--varnish", "3"}), "unexpected argument \"3\"");
  EXPECT_EQ(taken({"--sheen"}), "--sheen needs a value");
  EXPECT_EQ(taken({"--sheen", "--tints"}), "--sheen needs a value\n  --tints needs a value");
  const test::TempDir dir;
  write_file(dir / "p.yaml", "varnish: true\ntints: []\n");
  const std::string file = dir / "p.yaml";
  EXPECT_EQ(taken({"--config", file}), file + ":2: tints needs a value");
}

}  // namespace
}  // namespace megalith
