#include "libcore/text/pretokenize/gpt2_scan.h"

#include "libcore/base/text.h"
#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/unicode.h"
#include "tests/support/isa.h"
#include "tests/text/pretokenize/scan_check.h"

namespace megalith {
namespace {

struct Kernel {
  const char* name;
  FindGpt2 find;
};

/// The kernels that this processor can run, of those that choose(isa) gives.
std::vector<Kernel> kernels(FindGpt2 (*choose)(Isa) = find_gpt2) {
  std::vector<Kernel> out;
  for (const Isa isa : test::runnable_isas()) {
    const FindGpt2 find = choose(isa);
    if (find != nullptr && (out.empty() || out.back().find != find)) out.push_back({name(isa), find});
  }
  return out;
}

Ends wanted(std::string_view text) {
  Ends ends;
  for (size_t at = 0; at < text.size();) ends.push_back(at += gpt2_pretoken(text.substr(at)));
  return ends;
}

/// With each number apart, and the pattern applied to the texts between numbers.
Ends wanted_with_digits(std::string_view text) {
  Ends ends;
  size_t gap = 0;
  for (size_t at = 0; at <= text.size();) {
    const CodePoint c = at < text.size() ? code_point_at(text.substr(at)) : CodePoint{0, 1};
    const bool is_digit = at < text.size() && char_traits(c.value).is_digit();
    if (is_digit || at == text.size()) {
      for (const size_t end : wanted(text.substr(gap, at - gap))) ends.push_back(gap + end);
      gap = at + c.bytes;
    }
    at += c.bytes;
    if (is_digit) ends.push_back(at);
  }
  return ends;
}

void expect_all_equal(std::string_view text, size_t room = 4096) {
  const Ends right = wanted(text), right_with_digits = wanted_with_digits(text);
  for (const Kernel& kernel : kernels())
    ASSERT_EQ(found(kernel.find, text, room), right) << kernel.name << " " << quote(text);
  for (const Kernel& kernel : kernels(find_gpt2_digits))
    ASSERT_EQ(found(kernel.find, text, room), right_with_digits) << kernel.name << " " << quote(text);
}

TEST(Gpt2Scan, SplitsAtEveryCodePointAsTheDefinitionDoes) {
  std::string text;
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    const std::string c = utf8(code);
    for (const char* before : {"a", "1", "!", " ", "\n", "\xE3\x80\x80", "\xC2\xA0"}) text += before + c;
    text += c + "a" + c + "1" + c + "! " + c + c + " ";
    if (text.size() > 60'000) {
      expect_all_equal(text);
      text.clear();
    }
  }
  expect_all_equal(text);
}

TEST(Gpt2Scan, SplitsContractionsAndSpacesAtEveryPlaceOfABlock) {
  for (const char* piece : {"'s",
                            "'t",
                            "'re",
                            "'ve",
                            "'m",
                            "'ll",
                            "'d",
                            "'sam",
                            "''s",
                            " 's",
                            "'l",
                            "'v e",
                            "'s's'll've",
                            "\n",
                            "\n\n",
                            "\t ",
                            " \n",
                            "  x",
                            "   ",
                            "\xC2\xA0",
                            "\xE3\x80\x80\xE3\x80\x80",
                            " \xE3\x80\x80",
                            "\xE3\x80\x80x",
                            "\xE2\x80\x83\xC2\xA0 y",
                            "\xE6\x97\xA5\xE6\x9C\xAC",
                            "\xF0\x9F\x98\x80",
                            "\xF0\xA0\xAE\xB7",
                            "\xF0\x9D\x9F\x98",
                            "\xD0\xBF",
                            "\xC3\x97"})
    for (size_t before = 0; before < 132; ++before)
      for (const char fill : {'x', '0', '!', ' '})
        for (const char* after : {"", "x", " ", "1", "\n x", "\xE6\x97\xA5"})
          expect_all_equal(std::string(before, fill) + piece + after);
}

TEST(Gpt2Scan, SplitsRandomTextsAsTheDefinitionDoes) {
  std::mt19937 random(3);
  const auto pick = [&](uint32_t first, uint32_t last) {
    return static_cast<uint32_t>(first + random() % (last - first));
  };
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    const size_t kind = random() % 6, size = 1 + random() % 400;
    while (text.size() < size) {
      if (kind < 2)
        text += "ast 'rvemlld \n\t09!.B "[random() % 20];
      else if (kind < 3)
        text += utf8(pick(0x20u, 0x80u));
      else
        text += random() % 3 == 0 ? std::string(1 + random() % 3, " 'sx1\n"[random() % 6])
                                  : utf8(kind == 3   ? pick(0x80u, 0x800u)
                                         : kind == 4 ? pick(0x2000u, 0xA000u)
                                                     : pick(0x10000u, 0x20000u));
    }
    expect_all_equal(text, random() % 2 == 0 ? kMinEnds : 4096);
  }
}

TEST(Gpt2Scan, ContinuesWhereItsRoomEnds) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += i % 7 == 0 ? "a'll " : i % 5 == 0 ? "\n\n  x" : ".a";
  expect_all_equal(text, kMinEnds);
  expect_all_equal(std::string(100'000, 'a') + text, kMinEnds);
}

TEST(Gpt2Scan, GivesEveryByteOfBrokenUtf8ToOnePretoken) {
  expect_all_bytes_found(kernels());
  expect_all_bytes_found(kernels(find_gpt2_digits));
}

}  // namespace
}  // namespace megalith
