// Expected texts: transformers' apply_chat_template, tools/golden/make_chat_goldens.py.
#include "libcore/text/chat/chat_template.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

constexpr ErrorKind kData = ErrorKind::kData;

std::string render(const std::string& source, const Json::Object& variables = {}) {
  return ChatTemplate(source, "t.json").render(variables);
}

/// The error message; empty if there is none.
std::string complaint(const std::string& source, ErrorKind kind = kData) {
  try {
    render(source);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return {};
}

TEST(ChatTemplate, RendersAsTransformers) {
  const Json goldens = Json::load(test::test_data("text/goldens/chat_templates.json"));
  for (const Json& one : goldens["cases"].as_array()) {
    const std::string& name = one["template"].as_string();
    const ChatTemplate chat(goldens["templates"][name].as_string(), name);
    const ChatTokens tokens{.bos_token = "<s>", .eos_token = "</s>"};
    if (const Json* error = one.find("error")) {
      try {
        render_chat(chat, one["messages"], tokens);
        ADD_FAILURE() << name << ": accepted";
      } catch (const Error& found) {
        EXPECT_NE(std::string(found.what()).find(error->as_string()), std::string::npos) << found.what();
      }
      continue;
    }
    EXPECT_EQ(render_chat(chat, one["messages"], tokens), one["text"].as_string()) << name;
  }
}

// Each template gives the same text as in jinja2, or both refuse it.
TEST(ChatTemplate, EvaluatesAsJinja2) {
  const Json goldens = Json::load(test::test_data("text/goldens/chat_templates.json"));
  for (const Json& one : goldens["expressions"].as_array()) {
    const std::string& source = one["template"].as_string();
    try {
      const std::string text = render(source, goldens["variables"].as_object());
      EXPECT_EQ(text, one["text"].is_null() ? "refused" : one["text"].as_string()) << source;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kData) << source;
      EXPECT_TRUE(one["text"].is_null()) << source << ": " << error.what();
    }
  }
}

TEST(ChatTemplate, RefusesByNameAndLineWhatItDoesNotKnow) {
  EXPECT_EQ(complaint("a\n\n{% include 'x' %}"),
            "t.json: chat template, line 3: {% include %} is not supported");
  EXPECT_EQ(complaint("{{ 'a'\n | shuffle }}"),
            "t.json: chat template, line 2: the filter \"shuffle\" is not supported");
  EXPECT_EQ(complaint("{{ x is callable }}"),
            "t.json: chat template, line 1: the test \"callable\" is not supported");
  EXPECT_EQ(complaint("{{ x.encode(1) }}"),
            "t.json: chat template, line 1: the method \"encode\" is not supported");
  EXPECT_EQ(complaint("{{ dict(a=1) }}"),
            "t.json: chat template, line 1: the function \"dict\" is not supported");
}

TEST(ChatTemplate, RefusesByNameWhatItWouldHaveToLeaveOut) {
  for (const auto& [source, wanted] : std::vector<std::pair<std::string, std::string>>{
           {"[1]|join(',', attribute='a')",
            "the filter \"join\" with an argument named \"attribute\" is not supported"},
           {"[1]|join(',', 'a')", "the filter \"join\" takes at most 1 arguments here, found 2"},
           {"'a'|upper(1)", "the filter \"upper\" takes at most 0 arguments here, found 1"},
           {"'a'|replace('a')", "the filter \"replace\" is missing its argument \"new\""},
           {"'a'.replace('a', new='b')",
            "the method \"replace\" with an argument named \"new\" is not supported"},
           {"'7'|int(0, 8)", "the filter \"int\" takes at most 1 arguments here, found 2"},
           {"[1]|tojson(indent=1, indent=2)", "the filter \"tojson\" has its argument \"indent\" twice"},
           {"[1]|tojson(indent=1001)", "\"tojson\" with an indent of more than 1000"},
           {"namespace({'a': 1})", "the function \"namespace\" takes at most 0 arguments here, found 1"},
           {"namespace(_a=1)", "a namespace with the member \"_a\""},
           {"{'a': 1}.items", "the attribute \"items\" of a mapping without a call is not supported"},
           {"{'a': 1}['items']", "the attribute \"items\" of a mapping without a call is not supported"},
           {"'a'.__class__", "the attribute \"__class__\" of a text without a call is not supported"},
           {"strftime_now('%f')", "\"strftime_now\" with \"%f\" is not supported"},
           {"'1_000'|int", "\"int\" of \"1_000\" is not supported"},
           {"'abc'.startswith(('a', 'b'))", "\"startswith\": its argument of a list, wanted a text"},
       })
    EXPECT_EQ(complaint(concat("{{ ", source, " }}")), concat("t.json: chat template, line 1: ", wanted));
  EXPECT_EQ(complaint("{% for i in [1] recursive %}{% endfor %}"),
            "t.json: chat template, line 1: found \"recursive\", wanted the tag's end");
}

TEST(ChatTemplate, EndsWhereJsonWouldFillTheMemory) {
  std::string deep = "1";
  for (int i = 0; i < 60; ++i) deep = concat("[", deep, ", 1]");
  EXPECT_NE(
      complaint(concat("{% set ns = namespace(x=[", deep, "]) %}{% for i in range(9) %}",
                       "{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x|tojson(indent=1000)|length }}")),
      "");
}

TEST(ChatTemplate, ShowsNoControlCharacterOfARefusal) {
  EXPECT_EQ(complaint("{{ raise_exception('a\x1b[31m\nb') }}"),
            "t.json: the chat template refuses: a\\x1b[31m\\x0ab");
  EXPECT_LT(complaint("{{ raise_exception('" + std::string(1 << 20, 'a') + "') }}").size(), 1100U);
}

// Slices and ranges work as in Python. The parameters are those of transformers' tojson(x, ensure_ascii,
// indent).
TEST(ChatTemplate, TakesTheGreatestNumbersAndArgumentsByPlace) {
  EXPECT_EQ(render("{{ [1, 2, 3][1::9223372036854775807]|tojson }}"), "[2]");
  EXPECT_EQ(render("{{ [1, 2, 3][::-9223372036854775807]|tojson }}"), "[3]");
  EXPECT_EQ(render("{{ range(9223372036854775806, 9223372036854775807, 2)|list|tojson }}"),
            "[9223372036854775806]");
  EXPECT_EQ(render("{{ [1]|tojson(false, 1) }}"), "[\n 1\n]");
  // Python's: 7 // -1, -7 // -2, and the remainders.
  EXPECT_EQ(render("{{ [7 // -1, -7 // -2, 7 % -1, 7 % -2]|tojson }}"), "[-7, 3, 0, -1]");
  EXPECT_EQ(render("{{ (0 - 9223372036854775807 - 1) % -1 }}"), "0");
}

TEST(ChatTemplate, RefusesWhatIsNoTemplate) {
  for (const char* source :
       {"{{", "{{ 1", "{% if x %}", "{% for x %}{% endfor %}", "{% endif %}", "{{ ) }}", "{{ 'a }}",
        "{{ 1 + }}", "{% set = 1 %}", "{# x", "{{ a[1:2:3:4] }}", "{{ a b }}", "{% for a in b %}{% endif %}",
        "{{ \xff }}", "{{ 99999999999999999999 }}", "{% %}", "{{ '\\u12' }}", "{{ '\\ud83d' }}",
        "{{ {1 2} }}"})
    EXPECT_NE(complaint(source), "") << source;
}

TEST(ChatTemplate, RefusesOperationsThatAValueDoesNotHave) {
  for (const char* source :
       {"{{ x.y.z }}", "{{ 1 + 'a' }}", "{{ 1 < 'a' }}", "{{ 'a'[x] }}", "{{ 1[0] }}", "{{ 1 // 0 }}",
        "{{ 1 % 0 }}", "{{ -'a' }}", "{% set x.y = 1 %}", "{{ 9223372036854775807 + 1 }}",
        "{% for a, b in [1] %}{% endfor %}", "{{ [1][::0] }}", "{{ range(1000000) }}", "{{ range(1, 2, 0) }}",
        "{{ x is even }}", "{{ '\u00e9'|upper }}", "{{ (0 - 9223372036854775807 - 1) // -1 }}"})
    EXPECT_NE(complaint(source), "") << source;
}

TEST(ChatTemplate, EndsHoweverTheTemplateIsMade) {
  EXPECT_EQ(complaint("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
            "t.json: chat template, line 1: macros nested too deeply");
  EXPECT_NE(complaint("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"), "");
  std::string deep = "{{ ";
  for (int i = 0; i < 100000; ++i) deep += '(';
  EXPECT_NE(complaint(deep + "1 }}"), "");
  for (const char* sign : {" + 1", " < 1", " and 1", " if 1", "|trim", ".a", "[0]", " is defined"}) {
    std::string chain = "{{ 1";
    for (int i = 0; i < 100000; ++i) chain += sign;
    EXPECT_NE(complaint(chain + " }}"), "") << sign;
  }
  std::string blocks;
  for (int i = 0; i < 100000; ++i) blocks += "{% if 1 %}";
  EXPECT_NE(complaint(blocks), "");
}

std::string repeated(int times, std::string_view part) {
  std::string out;
  for (; times > 0; --times) out += part;
  return out;
}

// Sets x to about a mebibyte of text.
constexpr std::string_view kMebibyte = "{% set x = range(65536)|join('0123456789') %}";

TEST(ChatTemplate, RefusesEveryOperationThatOutgrowsTheMemory) {
  const std::string more = "{% set y = x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x ~ x %}";
  for (const char* source :
       {"{{ y ~ y ~ y ~ y ~ y ~ y }}", "{{ y + y + y + y + y + y }}", "{{ range(99999)|join(x) }}",
        "{{ x.join(x) }}", "{{ x|replace('1', x) }}", "{{ x.replace('', x) }}",
        "{{ [y, y, y, y, y, y, y]|length }}", "{{ {'a': y, 'b': y, 'c': y, 'd': y, 'e': y, 'f': y}|length }}",
        "{{ y|list|length }}", "{{ y.split('1')|length }}", "{% for c in y %}{% endfor %}",
        "{% set ns = namespace(t=[x]) %}{% for i in range(9) %}{% set ns.t = ns.t + ns.t %}{% endfor %}",
        "{% set ns = namespace(t=[x]) %}{% for i in range(9) %}{% set ns.t = [ns.t, ns.t] %}{% endfor %}",
        "{% set ns = namespace(t=x) %}{% for i in range(9) %}{% set ns.t = {'a': ns.t, 'b': ns.t} %}{% "
        "endfor %}"})
    EXPECT_NE(complaint(concat(kMebibyte, more, source)).find("a value of more than 67108864 bytes"),
              std::string::npos)
        << source;
}

TEST(ChatTemplate, RefusesVariablesThatTakeTooMuchTogether) {
  const std::string large = concat(kMebibyte, "{% set x = ", repeated(20, "x ~ "), "x %}");
  std::string sets, captures = "{{ x }}";
  for (int i = 0; i < 30; ++i) {
    sets += concat("{% set a", i, " = x %}");
    captures += concat("{% set a", i, " %}{{ x }}");
  }
  const std::string loops = concat(repeated(30, "{% for i in [x] %}"), repeated(30, "{% endfor %}"));
  for (const std::string& source : {sets, captures + repeated(30, "{% endset %}"), loops})
    EXPECT_NE(complaint(large + source).find("its variables take more than 268435456 bytes"),
              std::string::npos)
        << source;
}

// A variable's previous value no longer counts, nor do the variables of a loop that has ended.
TEST(ChatTemplate, CountsWhatVariablesHoldNow) {
  EXPECT_EQ(render(concat(
                kMebibyte, "{% set ns = namespace(x=x) %}{% for i in range(300) %}{% set y = x %}",
                "{% set ns.x = x %}{% endfor %}{% for c in [x] %}{% for i in range(300) %}{% set z = c %}",
                "{% endfor %}{% endfor %}{{ x|length == ns.x|length }}")),
            "True");
}

// The bytes of a variable that the caller gave count too, so that replacing it frees no more than it held.
TEST(ChatTemplate, CountsTheCallersVariables) {
  Json::Array messages(40, Json(std::string(1 << 20, 'a')));
  EXPECT_EQ(render("{% for i in range(20) %}{% set messages = messages[1:] %}{% endfor %}"
                   "{% set messages = messages[1:] %}{{ messages|length }}",
                   {{"messages", Json(std::move(messages))}}),
            "39");
}

TEST(ChatTemplate, TellsWhereAnswersAre) {
  const ChatTemplate chat("a{% for i in [1, 2] %}{% generation %}<{{ i }}>{% endgeneration %}{% endfor %}b",
                          "t");
  EXPECT_TRUE(chat.marks_answers());
  const ChatTemplate::Marked marked = chat.render_marked({});
  EXPECT_EQ(marked.text, "a<1><2>b");
  EXPECT_EQ(marked.answers, (std::vector<std::pair<size_t, size_t>>{{1, 4}, {4, 7}}));
  EXPECT_FALSE(ChatTemplate("{{ generation }}", "t").marks_answers());
  EXPECT_NE(complaint("{% set x %}{% generation %}a{% endgeneration %}{% endset %}"), "");
}

TEST(ChatTemplate, KnowsTheNamesThatItReads) {
  const ChatTemplate chat("{{ tools_here }}{{ m['tool_calls'] }}{{ m.thinking }}", "t");
  EXPECT_FALSE(chat.reads("tools"));
  EXPECT_TRUE(chat.reads("tool_calls"));
  EXPECT_TRUE(chat.reads("thinking"));
}

TEST(ChatTemplate, RefusesValuesNestedTooDeeply) {
  for (const char* outer : {"[ns.t]", "{'a': ns.t}"})
    EXPECT_EQ(complaint(concat("{% set ns = namespace(t=1) %}{% for i in range(99999) %}{% set ns.t = ",
                               outer, " %}{% endfor %}")),
              "t.json: chat template, line 1: a value nested more than 1200 levels deep");
}

// A chain is nested as deep as its tag is long. It must not exhaust the stack, and must take time linear in
// its length.
TEST(ChatTemplate, EvaluatesLongChains) {
  EXPECT_EQ(render(concat("{{ 1", repeated(990, " + 1"), " }}")), "991");
  EXPECT_EQ(render(concat("{{ 1", repeated(990, " <= 1"), " }}")), "True");
  EXPECT_EQ(render(concat("{{ 'a'", repeated(990, "|trim"), " }}")), "a");
  EXPECT_EQ(render(concat("{{ 'a'", repeated(490, ".strip()"), " }}")), "a");
  EXPECT_EQ(render(concat("{{ 1", repeated(990, " if 1"), " }}")), "1");
  EXPECT_EQ(render(concat("{{ 'a'", repeated(600, "[0]"), " }}")), "a");
  // A comparison that copied its operands would double the work at each level.
  EXPECT_EQ(render(concat("{{ ", repeated(60, "(0 == "), "0", repeated(60, " == 0)"), " }}")), "False");
  EXPECT_EQ(render(concat("{{ ", repeated(61, "(0 == "), "0", repeated(61, " == 0)"), " }}")), "True");
}

TEST(ChatTemplate, EndsWhereEachStepIsLong) {
  EXPECT_EQ(
      complaint(concat(kMebibyte, "{% set x = x ~ x ~ x ~ x ~ x ~ x ~ x ~ x %}{% for i in range(99999) %}",
                       "{{ x[0] }}{% endfor %}")),
      "t.json: chat template, line 1: the template does not end");
}

// On these texts, a search that starts again at each character would take hours.
TEST(ChatTemplate, SearchesInLinearTime) {
  EXPECT_EQ(
      render(
          "{% set ns = namespace(a='aaaaaaaa') %}{% for i in range(17) %}{% set ns.a = ns.a ~ ns.a %}"
          "{% endfor %}{% set b = ns.a ~ 'b' %}{% set a = ns.a ~ ns.a %}{{ b in a }} {{ a.split(b)|length }} "
          "{{ a|replace(b, 'c')|length }} {{ a.strip(a)|length }}"),
      "False 1 2097152 0");
}

// jinja2 compares whole names: a member "get items" is not an attribute.
TEST(ChatTemplate, KnowsAttributesFromMembersThatLookLikeThem) {
  EXPECT_EQ(render("{% set x = {'get items': 1} %}{{ x['get items'] }}{{ x['keys pop'] is defined }}"),
            "1False");
}

TEST(ChatTemplate, SaysThatAModelHasNone) {
  EXPECT_NE(complaint("", ErrorKind::kUsage).find("no chat template"), std::string::npos);
}

// By the rules of transformers 5.24 (utils/chat_template_utils.py: _normalize_chat_messages,
// _alias_reasoning_fields).
TEST(RenderChat, GivesMessagesAsTransformersDoes) {
  const Json::Array given = Json::parse(R"([{"role": "a", "content": null, "reasoning": "r", "thinking": "t"},
      {"role": "b", "reasoning": "r", "content": "c"}, {"role": "c", "reasoning_content": "", "content": "c"}, 3])",
                                        "")
                                .as_array();
  EXPECT_EQ(Json(messages_of_transformers(given)).dump(),
            Json::parse(R"([{"thinking": "t", "role": "a", "reasoning": "r", "reasoning_content": "t"},
      {"thinking": "r", "role": "b", "reasoning": "r", "content": "c", "reasoning_content": "r"},
      {"thinking": "", "role": "c", "reasoning_content": "", "content": "c"}, 3])",
                        "")
                .dump());
  const ChatTemplate chat("{{ messages[0].content is defined }}{{ messages[0].thinking }}", "t");
  EXPECT_EQ(
      render_chat(
          chat, Json::parse(R"([{"role": "assistant", "content": null, "reasoning_content": "x"}])", ""), {}),
      "Falsex");
  const Json calls = Json::parse(R"([{"role": "assistant", "tool_calls": [], "thinking": "x"}])", "");
  EXPECT_EQ(render_chat(chat, calls, {}), "Falsex");
}

TEST(RenderChat, RefusesWhatAreNoMessages) {
  const ChatTemplate chat("{{ messages|length }}", "t");
  EXPECT_EQ(render_chat(chat, Json::parse(R"({"messages": [{"role": "user", "content": "a"}]})", ""), {}),
            "1");
  const std::string more =
      R"({"messages": [{"role": "user", "content": "a"}], "tools": [1], "x": 2, "bos_token": 3})";
  const ChatTemplate variables("{{ tools is defined }}{{ tools }}{{ documents }}{{ x }}{{ bos_token }}", "t");
  EXPECT_EQ(render_chat(variables, Json::parse(more, ""), {.bos_token = "<s>", .eos_token = ""}),
            "True[1]None23");
  EXPECT_EQ(render_chat(variables, Json::parse(R"([{"role": "user", "content": "a"}])", ""), {}),
            "TrueNoneNone");
  for (const char* bad : {"[]", "{}", "3", R"(["a"])", R"([{"role": "user"}])", R"([{"content": "x"}])",
                          R"([{"role": 1, "content": "x"}])"})
    EXPECT_THROW(render_chat(chat, Json::parse(bad, ""), {}), Error) << bad;
}

}  // namespace
}  // namespace megalith
