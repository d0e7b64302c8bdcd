#include "libcore/options/render.h"

#include <string>

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/options/cli.h"
#include "tests/support/fates.h"
#include "tests/support/files.h"
#include "tests/support/once/pattern.h"

namespace megalith {
namespace {

enum class Speed { kSlow, kFast };
std::vector<EnumName<Speed>> enum_names(Speed) {
  return {{"slow", Speed::kSlow}, {"fast", Speed::kFast}};
}

struct Ride {
  std::string from, folder = "logs", name;
  std::vector<std::string> stops;
  int bikes = 2;
  double distance = 12.5;
  bool night = false, helmet = true;
  std::optional<bool> lights;
  Speed speed = Speed::kFast;
  int secret = 0;

  template <class V>
  void fields(V&& v) {
    v("from", from, "Where the ride begins.", positional(), required(), metavar("START"));
    v("stops", stops, "Where it halts.", positional(), metavar("STOP"));
    v("log_folder", folder, "Where the log goes.", metavar("DIR"));
    v("name", name,
      "Name of the ride; a long sentence that has to be broken over two lines of the help text.");
    v("bikes", bikes, "Bikes | riders.", at_least(1), alias({"cycles"}));
    v("distance", distance, "Length in km.", between(0, 300));
    v("night", night, "Ride at night.");
    v("helmet", helmet, "Wear a helmet.", opposite({"bare-headed"}));
    v("lights", lights, "Switch the lights on.", default_text("as --night"));
    v("speed", speed, "Speed.");
    v("secret", secret, "Not shown.", unlisted());
  }
};

struct RideOptions {
  Ride ride;
  Options options{"ride", "Ride a bike."};
  RideOptions() {
    options.add("Riding", ride).epilog("Example:\n  megalith-ride here --bikes 3\n.hidden request\n");
  }
};

TEST(Render, ShortNamesAndValuesThatMayBeLeftOut) {
  std::optional<std::string> sail;
  FieldList list;
  list("sail", sail, "Whose sail.", alias({"-s", "canvas"}), metavar("[FILE]"));
  const OptionDoc doc = document(list.take().at(0), "");
  EXPECT_EQ(doc.spelling, "--sail [FILE]");
  EXPECT_EQ(doc.note, "also -s, --canvas");
  EXPECT_EQ(doc.flags, (std::vector<std::string>{"--sail", "--canvas"}));
}

TEST(Render, HelpText) {
  EXPECT_EQ(RideOptions().options.help(80),
            R"(usage: megalith-ride [options] START [STOP ...]

Ride a bike.

Riding:
  START                               Where the ride begins. [required]
  STOP ...                            Where it halts.
  --log_folder DIR                    Where the log goes. [default: logs]
  --name TEXT                         Name of the ride; a long sentence that has
                                      to be broken over two lines of the help
                                      text.
  --bikes N                           Bikes | riders. [default: 2; also
                                      --cycles]
  --distance X                        Length in km. [default: 12.5; between 0
                                      and 300]
  --night                             Ride at night.
  --[no-]helmet                       Wear a helmet. [default: on; also
                                      --bare-headed]
  --[no-]lights                       Switch the lights on. [default: as
                                      --night]
  --speed {slow,fast}                 Speed. [default: fast]

General:
  --config FILE                       Read options from this YAML or JSON file;
                                      the command line has precedence.
  --quiet                             Draw no progress line.
  --help                              Print this text. [also -h]
  --version                           Print the version.

Example:
  megalith-ride here --bikes 3
.hidden request
)");
}

TEST(Render, HelpShowsDefaultsNotWhatWasGiven) {
  RideOptions r;
  const auto text = r.options.read({"--bikes", "7", "--unknown", "--help"});
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("[default: 2; also"), std::string::npos);
}

TEST(Render, Version) {
  const auto text = RideOptions().options.read({"--version"});
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->starts_with("megalith-ride 0.1.0\ncommit: ")) << *text;
}

TEST(Render, Purpose) {
  EXPECT_EQ(RideOptions().options.read({"--help-purpose"}), "Ride a bike.\n");
}

TEST(Render, Markdown) {
  const auto text = RideOptions().options.read({"--help-markdown"});
  ASSERT_TRUE(text);
  const std::string start =
      "## megalith-ride\n\nRide a bike.\n\n```\nmegalith-ride [options] START [STOP ...]\n```\n\n### "
      "megalith-ride: Riding\n\n"
      "| option | meaning | notes |\n|---|---|---|\n| `START` | Where the ride begins. | required |\n";
  EXPECT_EQ(text->substr(0, start.size()), start);
  EXPECT_NE(text->find("| `--bikes N` | Bikes \\| riders. | default: 2; also --cycles |\n"),
            std::string::npos);
  EXPECT_EQ(text->find("secret"), std::string::npos);
}

constexpr OptionFate kOthers[] = {
    {.name = "bell-*", .tool = "Tandem"},
    {.name = "gears", .remedy = "give --speed", .plain = "1|none", .only = "hills"},
    {.name = "basket", .tool = "Cargo", .values = OptionFate::kMaybeOne},
    {.name = "pace", .remedy = "give --speed", .repeats = "speed"},
    {.name = "wings", .remedy = "stay | land"}};

TEST(Render, MarkdownListsOptionsOfOtherTools) {
  RideOptions ride;
  ride.options.fates(test::maker(kOthers));
  const auto text = ride.options.read({"--help-markdown"});
  ASSERT_TRUE(text);
  EXPECT_NE(
      text->find("### megalith-ride: options of other tools\n\n"
                 "The log names ignored options that are given.\n\n"
                 "| ignored | tool |\n|---|---|\n"
                 "| `--bell-*` | Tandem |\n| `--[no-]basket` | Cargo |\n\n"
                 "| refused | instead |\n|---|---|\n"
                 "| `--gears` unless `1`, `none` (with hills), `--pace` unless the value of `--speed` | "
                 "give --speed |\n| `--wings` | stay \\| land |\n"),
      std::string::npos)
      << *text;
}

TEST(Render, ManPageIsReadByGroffWithoutWarning) {
  if (test::run_command("command -v groff").code != 0) GTEST_SKIP() << "groff is not installed";
  const test::TempDir folder;
  write_file(folder / "ride.1", RideOptions().options.man());
  const auto page = test::run_command("groff -man -Tascii -ww -P-cbou " + folder / "ride.1");
  EXPECT_EQ(page.code, 0);
  EXPECT_EQ(page.err, "");
  const std::string words = test::replaced(page.out, "\\s+", " ");  // man pads lines with blanks
  for (const char* text : {"MEGALITH-RIDE(1)", "megalith-ride - Ride a bike.", "--log_folder DIR",
                           "--[no-]helmet", ".hidden request", "An option is unknown"})
    EXPECT_NE(words.find(text), std::string::npos) << text << '\n' << page.out;
}

struct Long {
  std::string kind = "first-of-many-kinds";
  template <class V>
  void fields(V&& v) {
    v("kind", kind, "Kind.",
      one_of({"first-of-many-kinds", "second-of-many-kinds", "third-of-many-kinds", "fourth-of-many-kinds"}));
  }
};

TEST(Render, HelpFitsTheWidth) {
  Long config;
  Options options("wide",
                  "Do something that takes so many words to say that no line of sixty columns holds it all.");
  options.add("Wide", config);
  for (const int width : {60, 80, 120})
    for (const std::string& line : split(options.help(width), '\n'))
      EXPECT_LE(line.size(), static_cast<size_t>(width)) << line;
  EXPECT_NE(options.help(80).find("  --kind {first-of-many-kinds,second-of-many-kinds,third-of-many-kinds,\n"
                                  "      fourth-of-many-kinds}\n"),
            std::string::npos)
      << options.help(80);
}

TEST(Render, ManPageBreaksListsOfChoices) {
  if (test::run_command("command -v groff").code != 0) GTEST_SKIP() << "groff is not installed";
  Long config;
  Options options("wide", "Choose.");
  options.add("Wide", config);
  const test::TempDir folder;
  write_file(folder / "wide.1", options.man());
  const auto page = test::run_command("groff -man -Tascii -ww -P-cbou " + folder / "wide.1");
  EXPECT_EQ(page.err, "");  // for a list longer than a line, man would print "cannot adjust line"
  EXPECT_NE(page.out.find("second-of-many-kinds,"), std::string::npos) << page.out;
  for (const std::string& line : split(page.out, '\n')) EXPECT_LE(line.size(), 80u) << line;
}

TEST(Render, ManPageHasTheSectionsOfOne) {
  RideOptions ride;
  ride.options.environment({{"RIDE_HOME", "Where a ride ends."}}).files({{"ride.log", "What happened."}});
  const std::string page = ride.options.man();
  size_t at = 0;
  for (const char* part : {".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS", ".SH ENVIRONMENT", "RIDE_HOME",
                           ".SH FILES", "ride.log", ".SH EXAMPLES", ".SH EXIT STATUS", ".B 75", ".B 130"}) {
    at = page.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << '\n' << page;
  }
}

TEST(Render, ManPageNamesTheExitCodeOfEveryError) {
  const std::string page = RideOptions().options.man();
  for (const ErrorKind kind : {ErrorKind::kUsage, ErrorKind::kData, ErrorKind::kNoInput, ErrorKind::kDevice,
                               ErrorKind::kInternal, ErrorKind::kSystem, ErrorKind::kIo, ErrorKind::kComm})
    EXPECT_NE(page.find(concat("\n.B ", exit_code(kind), '\n'), page.find(".SH EXIT STATUS")),
              std::string::npos)
        << exit_code(kind);
}

}  // namespace
}  // namespace megalith
