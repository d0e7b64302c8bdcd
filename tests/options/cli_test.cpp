#include "libcore/options/cli.h"

#include <functional>
#include <random>

#include <gtest/gtest.h>

#include "libcore/config/pretrain_config.h"
#include "libcore/io/files/file.h"
#include "tests/options/paint.h"
#include "tests/support/fates.h"
#include "tests/support/files.h"
#include "tests/support/log_lines.h"

namespace megalith {
namespace {

using test::Colour;
using test::LogLines;
using test::Paint;

/// Options that a program reads from these arguments.
template <class Config>
Config read_options(const std::vector<std::string>& arguments) {
  Config config;
  Options options("test", "Test options.");
  options.add("Testing", config);
  EXPECT_FALSE(options.read(arguments));
  options.check();
  return config;
}

Paint painted(const std::vector<std::string>& arguments) {
  return read_options<Paint>(arguments);
}

/// The message of check() about these arguments; empty when it accepts them.
std::string complaint(const std::vector<std::string>& arguments) {
  try {
    painted(arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return {};
}

TEST(Options, TellWhatWasGivenAsWords) {
  Paint paint;
  Options options("paint", "Paint a wall.");
  options.add("Painting", paint);
  EXPECT_FALSE(options.read({"north wall", "--layers_of_paint", "2", "--skip-primer", "--gloss", "--keys",
                             "a", "b c", "--colour=green", "--thickness", "2.5e-1"}));
  using Words = std::vector<std::string>;
  EXPECT_EQ(options.given_words({"Painting"}), (std::vector<Words>{{"--wall", "north wall"},
                                                                   {"--coats", "2"},
                                                                   {"--thickness", "0.25"},
                                                                   {"--no-primer"},
                                                                   {"--gloss"},
                                                                   {"--keys", "a", "b c"},
                                                                   {"--colour", "green"}}));
  EXPECT_TRUE(options.given_words({"Other"}).empty());
}

// Withdrawn options are not listed. If one is given, it is refused by its name.
TEST(Options, WithdrawnOnesAreNotListedButRefusedByName) {
  constexpr WithdrawnOption kWithdrawn[] = {{"coats", "give --thickness"}, {"primer", "leave it out"}};
  const auto message = [&](const std::vector<std::string>& arguments) -> std::string {
    Paint paint;
    Options options("paint", "Paint a wall.");
    options.add("Painting", paint).withdraw(kWithdrawn);
    EXPECT_FALSE(options.read(arguments));
    try {
      options.check();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return error.what();
    }
    EXPECT_EQ(paint.coats, 1);
    return "accepted";
  };
  EXPECT_EQ(message({"w"}), "accepted");
  EXPECT_EQ(message({"w", "--coats", "7", "--dry-run"}), "--coats is not supported; give --thickness");
  EXPECT_EQ(message({"w", "--layers_of_paint=7"}), "--coats is not supported; give --thickness");
  EXPECT_EQ(message({"w", "--no-primer"}), "--primer is not supported; leave it out");
  EXPECT_EQ(message({"w", "--coat", "1"}), "unknown option \"--coat\"");
  const test::TempDir dir;
  write_file(dir / "p.yaml", "thickness: 1\ncoats: 3\n");
  EXPECT_EQ(message({"w", "--config", dir / "p.yaml"}),
            std::string(dir / "p.yaml") + ":2: coats is not supported; give --thickness");
  write_file(dir / "p.yaml", "thickness: 1\ncoats:\nprimer: null\n");
  EXPECT_EQ(message({"w", "--config", dir / "p.yaml"}), "accepted");
  Paint paint;
  Options options("paint", "Paint a wall.");
  options.add("Painting", paint).withdraw(kWithdrawn);
  for (const std::string& text :
       {options.help(), options.man(), options.markdown(), options.bash_completion()}) {
    EXPECT_EQ(text.find("coats"), std::string::npos) << text;
    EXPECT_NE(text.find("thickness"), std::string::npos) << text;
  }
}

TEST(Options, ThatAreWithdrawnHaveToBeThere) {
  constexpr WithdrawnOption kUnknown[] = {{"varnish", "leave it out"}};
  Paint paint;
  Options options("paint", "Paint a wall.");
  options.add("Painting", paint);
  try {
    options.withdraw(kUnknown);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInternal);
    EXPECT_EQ(std::string(error.what()), "no option is called --varnish");
  }
}

TEST(Options, AreWithdrawnOnce) {
  constexpr WithdrawnOption kTwice[] = {{"coats", "give --thickness"}, {"coats", "leave it out"}};
  Paint paint;
  Options options("paint", "Paint a wall.");
  options.add("Painting", paint);
  EXPECT_THROW(options.withdraw(kTwice), Error);
}

struct Ladder {
  int rungs = 0;
  template <class V>
  void fields(V&& v) {
    v("rungs", rungs, "Rungs.");
  }
  void validate(Problems& problems) const {
    if (rungs == 0) problems.missing({"rungs"});
    if (rungs > 9) problems.add(Opt{"rungs"}, " is too many");
  }
};

// A program that uses some options of a group checks those that are given, and requires none.
TEST(Options, CheckWhatIsGivenOfAGroup) {
  const auto said = [](const std::vector<std::string>& arguments) -> std::string {
    Paint paint;
    Ladder ladder;
    Options options("paint", "Paint a wall.");
    options.add("Painting", paint).add("Climbing", ladder);
    options.read(arguments);
    try {
      options.check({"Painting"}, {"Climbing"});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said({"w"}), "");
  EXPECT_EQ(said({"w", "--rungs", "10"}), "--rungs is too many");
}

// A key without a value counts as not given, as in LLaMA-Factory's files ("deepspeed: null").
TEST(Options, RefuseNoKeyThatIsNull) {
  constexpr OptionFate kFates[] = {{.name = "varnish", .remedy = "leave it out"}};
  const test::TempDir dir;
  const auto read = [&](const std::string& yaml) {
    write_file(dir / "p.yaml", yaml);
    Paint paint;
    Options options("paint", "Paint a wall.");
    options.add("Painting", paint).fates(test::maker(kFates));
    options.read({"w", "--config", dir / "p.yaml"});
    options.check();
    return paint.coats;
  };
  EXPECT_EQ(read("coats: null\nlayers_of_paint: 3\n"), 3) << "a null key is not given by its other name";
  EXPECT_EQ(read("layers_of_paint: 3\ncoats:\n"), 3);
  EXPECT_THROW(read("layers_of_paint: 3\ncoats: 2\n"), Error);
  EXPECT_THROW(read("no_option: null\n"), Error);
  EXPECT_NO_THROW(read("varnish: null\n"));
  EXPECT_NO_THROW(read("varnish:\n"));
  EXPECT_THROW(read("varnish: red\n"), Error);
}

TEST(CommandLine, TakesNoWordWithOneDashAsAValue) {
  EXPECT_EQ(complaint({"w", "--keys", "a", "-n", "3"}), "unknown option \"-n\"");
  EXPECT_EQ(complaint({"w", "--brush", "-n"}),
            "--brush needs a value; one that begins with \"-\" is given as \"--brush=-n\"");
  EXPECT_EQ(painted({"w", "--keys", "a", "- b", "-1", "-"}).keys,
            (std::vector<std::string>{"a", "- b", "-1", "-"}));
  EXPECT_EQ(painted({"w", "--keys=-n"}).keys, std::vector<std::string>{"-n"});
}

TEST(CommandLine, ComplainsOnceOfAValueThatIsNone) {
  PretrainConfig config;
  Options options("pretrain", "Train.");
  config.add_to(options);
  options.read({"--num-layers", "four"});
  try {
    options.check();
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("--num-layers \"four\": wanted an integer\n"), 0u) << text;
    EXPECT_EQ(text.find("--num-layers", 1), std::string::npos) << text;
    EXPECT_NE(text.find("--hidden-size is missing"), std::string::npos) << text;
  }
}

TEST(CommandLine, KnowsTheShortFormOfHelp) {
  Paint paint;
  Options options("paint", "Paint a wall.");
  options.add("Painting", paint);
  const auto help = options.read({"-h"});
  ASSERT_TRUE(help);
  EXPECT_EQ(help->find("usage: megalith-paint"), 0u);
}

/// Options with short names, and one that may stand alone.
struct Boat {
  std::vector<std::string> crew;
  int oars = 2;
  std::optional<std::string> sail;
  std::string seats;

  template <class V>
  void fields(V&& v) {
    v("crew", crew, "Who rows.", alias({"-c"}));
    v("oars", oars, "How many.", alias({"-o", "paddles"}));
    v("sail", sail, "Whose sail.", metavar("[FILE]"));
    v("seats", seats, "Which seats.", metavar("[A,B)"));
  }
};

Boat boat_of(const std::vector<std::string>& arguments) {
  return read_options<Boat>(arguments);
}

TEST(CommandLine, KnowsShortNames) {
  const Boat boat = boat_of({"-c", "a", "b", "-o", "3", "-c", "d"});
  EXPECT_EQ(boat.crew, (std::vector<std::string>{"a", "b", "d"}));
  EXPECT_EQ(boat.oars, 3);
  EXPECT_EQ(boat_of({"-o", "3", "--oars", "4"}).oars, 4);
  for (const std::vector<std::string>& refused : std::vector<std::vector<std::string>>{
           {"-o", "x"}, {"-o"}, {"-o3"}, {"-O", "3"}, {"--o", "3"}, {"-o", "3", "--paddles", "4"}})
    EXPECT_THROW(boat_of(refused), Error) << refused.front();
  struct Twice {
    int oars = 0, other = 0;
    void fields(FieldList& v) {
      v("oars", oars, "Some.", alias({"-o"}));
      v("other", other, "Others.", alias({"-o"}));
    }
  } twice;
  Options options("boat", "Row a boat.");
  EXPECT_THROW(options.add("Rowing", twice), Error);
}

TEST(CommandLine, TakesAnOptionThatMayStandAlone) {
  EXPECT_EQ(boat_of({}).sail, std::nullopt);
  EXPECT_EQ(boat_of({"--sail"}).sail, "");
  EXPECT_EQ(boat_of({"--sail", "-o", "1"}).sail, "");
  EXPECT_EQ(boat_of({"--sail", "--oars", "1"}).sail, "");
  EXPECT_EQ(boat_of({"--sail", "s"}).sail, "s");
  EXPECT_EQ(boat_of({"--sail", "-"}).sail, "-");
  EXPECT_THROW(boat_of({"--seats", "--sail"}), Error);
}

TEST(CommandLine, SuggestsNoOptionThatOnlyLooksAlike) {
  const auto complaint_of = [](const std::string& option) -> std::string {
    PretrainConfig config;
    Options options("pretrain", "Train.");
    config.add_to(options);
    options.read({option, "3"});
    try {
      options.check();
    } catch (const Error& error) {
      const std::string text = error.what();
      return text.substr(0, text.find('\n'));
    }
    return "accepted";
  };
  EXPECT_EQ(complaint_of("--x"), "unknown option \"--x\"");
  EXPECT_EQ(complaint_of("--q"), "unknown option \"--q\"");
  EXPECT_EQ(complaint_of("--sxc-length"),
            "unknown option \"--sxc-length\"");  // no suggestion: two of three letters of a word differ
  EXPECT_EQ(complaint_of("--seq-lenght"), "unknown option \"--seq-lenght\"; did you mean \"--seq-length\"?");
  EXPECT_EQ(complaint_of("--num-layer"), "unknown option \"--num-layer\"; did you mean \"--num-layers\"?");
  EXPECT_EQ(complaint_of("--numlayers"), "unknown option \"--numlayers\"; did you mean \"--num-layers\"?");
}

TEST(Options, ReadEveryType) {
  const Paint p =
      painted({"--coats", "3", "--thickness=.5", "--dry-run", "--drops", "4000000000", "--brush", "round",
               "--keys", "a", "b", "--colour", "green", "--gloss", "false", "--", "north"});
  EXPECT_EQ(p.coats, 3);
  EXPECT_EQ(p.thickness, 0.5);
  EXPECT_TRUE(p.dry);
  EXPECT_EQ(p.drops, 4000000000);
  EXPECT_EQ(p.brush, "round");
  EXPECT_EQ(p.keys, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(p.colour, Colour::kGreen);
  EXPECT_EQ(p.gloss, false);
  EXPECT_EQ(p.wall, "north");
}

TEST(Options, KeepDefaultsOfWhatIsNotGiven) {
  const Paint p = painted({"north"});
  EXPECT_EQ(p.coats, 1);
  EXPECT_TRUE(p.primer);
  EXPECT_EQ(p.gloss, std::nullopt);
  EXPECT_EQ(p.keys, std::vector<std::string>{"text"});
}

TEST(Options, TakeUnderscoresForDashes) {
  EXPECT_TRUE(painted({"w", "--dry_run"}).dry);
  EXPECT_EQ(painted({"w", "--layers-of-paint", "2"}).coats, 2);
  EXPECT_EQ(painted({"w", "--layers_of_paint", "2"}).coats, 2);
}

TEST(Options, TakeEverySpellingOfAFlag) {
  for (const char* word : {"true", "1", "True"}) EXPECT_TRUE(painted({"--dry-run", word, "w"}).dry) << word;
  for (const char* word : {"false", "0", "False"})
    EXPECT_FALSE(painted({"--primer", word, "w"}).primer) << word;
  EXPECT_FALSE(painted({"--no-primer", "w"}).primer);
  EXPECT_FALSE(painted({"--no_primer", "w"}).primer);
  EXPECT_FALSE(painted({"--skip-primer", "w"}).primer);
  EXPECT_TRUE(painted({"--skip-primer", "0", "w"}).primer);
  EXPECT_TRUE(painted({"--no-primer", "--primer", "w"}).primer);
  EXPECT_EQ(painted({"--dry-run", "w"}).wall, "w");  // after a flag, only a value of a flag is its value
}

TEST(Options, JoinListsGivenTwiceAndTakeTheLastOfOthers) {
  const Paint p = painted({"--keys", "a", "--coats", "2", "--keys", "b", "c", "--coats", "3", "--", "w"});
  EXPECT_EQ(p.keys, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(p.coats, 3);
}

TEST(Options, RefuseTwoNamesOfOneWithDifferentValues) {
  EXPECT_EQ(complaint({"w", "--coats", "2", "--layers-of-paint", "3"}),
            "--coats 2 and --layers-of-paint 3 are two names of one option; give one of them");
  EXPECT_EQ(complaint({"w", "--layers_of_paint", "2", "--layers-of-paint", "3"}), "") << "one name, twice";
  EXPECT_EQ(complaint({"w", "--coats", "2", "--layers-of-paint", "2", "--coats", "3"}),
            "--coats 3 and --layers-of-paint 2 are two names of one option; give one of them");
  EXPECT_EQ(complaint({"w", "--coats", "2", "--layers-of-paint", "3", "--coats", "3"}), "");
  EXPECT_EQ(complaint({"w", "--coats", "many", "--layers-of-paint", "3"}),
            "--coats \"many\": wanted an integer");
  EXPECT_EQ(painted({"w", "--layers-of-paint", "3", "--coats", "3"}).coats, 3);
}

TEST(Options, SayWhatAnotherToolsOptionIsHere) {
  static constexpr PeerName kPeers[] = {{"tiers", "--coats, at least one"}, {"vans", "--vehicles"}};
  Paint paint;
  Options options("paint", "Paint a wall.");
  options.add("Painting", paint).peer_names(kPeers).elsewhere([](const std::string&) {
    return "; megalith-x has it";
  });
  options.read({"w", "--tiers", "3", "--vans", "2"});
  try {
    options.check();
    ADD_FAILURE() << "nothing was wrong";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "unknown option \"--tiers\"; here it is --coats, at least one\n"
                 "  unknown option \"--vans\"; megalith-x has it");
  }
}

TEST(Options, TakeNegativeNumbersAndDashesAsValues) {
  EXPECT_EQ(complaint({"w", "--coats", "-3"}), "--coats -3: wanted at least 1");
  EXPECT_EQ(painted({"-"}).wall, "-");
  EXPECT_EQ(painted({"--", "--coats"}).wall, "--coats");
}

TEST(Options, NameTheNearestKnownOption) {
  EXPECT_EQ(complaint({"w", "--coat", "3"}), "unknown option \"--coat\"; did you mean \"--coats\"?");
  EXPECT_EQ(complaint({"w", "--no_prime"}), "unknown option \"--no_prime\"; did you mean \"--no-primer\"?");
  EXPECT_EQ(complaint({"w", "--xyzzy", "1", "2"}), "unknown option \"--xyzzy\"");
  EXPECT_EQ(complaint({"w", "-coats"}), "unknown option \"-coats\"; did you mean \"--coats\"?");
  EXPECT_EQ(complaint({"w", "---"}), "unknown option \"---\"");
  EXPECT_EQ(complaint({"w", "--colour", "gren"}),
            "--colour \"gren\": wanted one of red, green; did you mean \"green\"?");
}

TEST(Options, ReportEveryComplaintAtOnce) {
  EXPECT_EQ(complaint({"--coat", "1", "--coats", "9", "--thickness", "thin", "--dry-run", "--brush", "wide",
                       "--drops", "99999999999999999999"}),
            "unknown option \"--coat\"; did you mean \"--coats\"?\n  "
            "--thickness \"thin\": wanted a number\n  "
            "--brush \"wide\": wanted one of flat, round\n  "
            "--drops \"99999999999999999999\": wanted an integer\n  "
            "WALL is missing\n  "
            "--dry-run with --coats 9 is odd");
}

/// What an app with this rule says of `arguments` and this config file.
std::string complaint_with_file(const std::string& file, const std::vector<std::string>& arguments,
                                const std::function<void(Problems&)>& rule) {
  Paint paint;
  Options options("paint", "Paint a wall.");
  options.add("Painting", paint).rule(rule);
  std::vector<std::string> words = {"--config", file, "w"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  EXPECT_FALSE(options.read(words));
  try {
    options.check();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Options, NoteWhichLinesOfTheFileGiveThoseThatAComplaintNames) {
  const test::TempDir folder;
  const std::string file = folder / "run.yaml";
  write_file(file, "coats: 9\nprimer: false\ndrops: 3\nthickness: 1\n");
  const auto rule = [](Problems& problems) {
    problems.add(Opt{"layers_of_paint"}, " need ", Opt{"no-primer"}, ", and --thickness is only a word here");
    problems.add(Opt{"drops"}, " of the command line");
    problems.add_at("run.yaml:1", Opt{"coats"}, " has its place");
  };
  EXPECT_EQ(complaint_with_file(file, {"--dry-run", "--drops", "4"}, rule),
            "--dry-run with --coats 9 is odd (" + file + ":1 gives --coats)\n  " +
                "--layers_of_paint need --no-primer, and --thickness is only a word here (" + file +
                ":1 gives --layers_of_paint; " + file + ":2 gives --no-primer)\n  " +
                "--drops of the command line\n  run.yaml:1: --coats has its place");
}

TEST(Options, ThatHaveARefusedValueAreNotCalledMissing) {
  const test::TempDir folder;
  const std::string file = folder / "run.yaml";
  write_file(file, "coats: many\n");
  const auto rule = [](Problems& problems) {
    for (const char* name : {"coats", "drops", "thickness"}) problems.missing({name});
  };
  EXPECT_EQ(complaint_with_file(file, {"--drops", "-1"}, rule),
            file + ":1: coats \"many\": wanted an integer\n  --drops -1: wanted at least 0\n  " +
                "--thickness is missing");
}

TEST(Options, RefuseWhatDoesNotFit) {
  EXPECT_EQ(complaint({"w", "--coats"}), "--coats needs a value");
  EXPECT_EQ(complaint({"w", "--coats", "--dry-run"}), "--coats needs a value");
  EXPECT_EQ(complaint({"w", "--coats", "4294967297"}), "--coats 4294967297: wanted an integer below 2^31");
  EXPECT_EQ(complaint({"w", "--thickness", "2.5"}), "--thickness 2.5: wanted between 0 and 2");
  EXPECT_EQ(complaint({"w", "--thickness", "nan"}), "--thickness nan: wanted a finite number");
  EXPECT_EQ(complaint({"w", "--dry-run=maybe"}), "--dry-run \"maybe\": wanted true or false");
  EXPECT_EQ(complaint({"w", "x"}), "unexpected argument \"x\"");
  EXPECT_EQ(complaint({}), "WALL is missing");
}

TEST(Options, SplitWordsThatAMissingBlankJoined) {
  LogLines log;
  const Paint p = painted({"--coats", "4--thickness", "1", "--dry-run", "1--drops", "5", "w"});
  EXPECT_EQ(p.coats, 4);
  EXPECT_EQ(p.thickness, 1);
  EXPECT_TRUE(p.dry);
  EXPECT_EQ(p.drops, 5);
  ASSERT_EQ(log.lines.size(), 2u);
  EXPECT_EQ(log.lines[0],
            "warning: \"4--thickness\" was read as two words; put a blank before the \"\\\" at the end of "
            "the line of --coats");
  EXPECT_EQ(complaint({"w", "--coats", "20--brsh", "x"}),
            "unexpected argument \"x\"\n  --coats \"20--brsh\": wanted an integer");
}

TEST(Options, KnowWhereAValueComesFrom) {
  test::TempDir folder;
  write_file(folder / "run.yaml", "paint:\n  coats: 4\n\n  thickness: 1\n  drops: 7\n");
  Paint paint;
  Options options("paint", "Paint a wall.");
  options.add("Painting", paint);
  ASSERT_FALSE(options.read({"w", "--config", folder / "run.yaml", "--drops", "9"}));
  options.adopt(Json::object().set("unused", 1),
                "iter_0000010");  // "unused" is not an option, so nothing is set
  Json args = Json::object();
  args.set("thickness", 2);
  args.set("drops", 8);
  args.set("brush", "round");
  options.adopt(args, "iter_0000010");
  options.check();
  EXPECT_EQ(options.source("coats"), folder / "run.yaml:2");
  EXPECT_EQ(options.source("thickness"), "checkpoint iter_0000010");
  EXPECT_EQ(options.source("brush"), "checkpoint iter_0000010");
  EXPECT_EQ(options.source("drops"), "command line");
  EXPECT_EQ(options.source("keys"), "default");
  EXPECT_TRUE(options.given("coats"));
  EXPECT_FALSE(options.given("keys"));
  EXPECT_TRUE(options.in_config_file("coats"));
  for (const char* other : {"thickness", "drops", "keys"})
    EXPECT_FALSE(options.in_config_file(other)) << other;
  EXPECT_EQ(paint.coats, 4);
  EXPECT_EQ(paint.thickness, 2);
  EXPECT_EQ(paint.drops, 9);
  EXPECT_EQ(paint.brush, "round");
}

TEST(Options, DescribeValuesWithTheirSource) {
  Paint paint;
  Options options("paint", "Paint a wall.");
  options.add("Painting", paint);
  ASSERT_FALSE(options.read({"w", "--keys", "a", "b"}));
  const auto lines = options.describe();
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines[0], "  wall " + std::string(42, '.') + " w (command line)");
  EXPECT_EQ(lines[1], "  coats " + std::string(41, '.') + " 1");
  EXPECT_EQ(lines[5], "  gloss " + std::string(41, '.') + " none");
  EXPECT_EQ(lines[8], "  keys " + std::string(42, '.') + " a b (command line)");
}

TEST(Options, SurviveAnyWords) {  // the test ends by a crash unless every outcome is options or an Error
  const std::vector<std::string> pieces = {"--coats", "--no-",        "-",         "--",   "=",
                                           "1",       "--keys",       "\"",        "\xff", "",
                                           " ",       "--dry_run",    "--primer=", "9--",  "--thickness",
                                           "1e999",   "--colour=red", "--help=",   "w",    "--drops"};
  std::mt19937 random(3);
  const LogLines log;
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> arguments(random() % 6);
    for (std::string& word : arguments)
      for (size_t i = random() % 3 + 1; i-- > 0;) word += pieces[random() % pieces.size()];
    Paint paint;
    Options options("paint", "Paint a wall.");
    options.add("Painting", paint);
    try {
      if (!options.read(arguments)) options.check();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(Options, RefuseTwoOptionsOfOneName) {
  Paint first, second;
  Options options("paint", "Paint a wall.");
  options.add("Painting", first);
  EXPECT_THROW(options.add("Again", second), Error);
}

TEST(Options, CheckOnlyTheGroupsNamed) {
  PretrainConfig config;
  Options options("pretrain", "Train.");
  config.add_to(options);
  ASSERT_FALSE(options.read({"--data-path", "x"}));
  EXPECT_NO_THROW(options.check({"Data"}));
  EXPECT_THROW(options.check(), Error);
}

}  // namespace
}  // namespace megalith
