// libmegalith_oniguruma.so: see oniguruma.h.

#include <climits>
#include <memory>
#include <string>

#include <oniguruma.h>

#include "libcore/base/error.h"
#include "libcore/text/patterns/oniguruma.h"
#include "libcore/text/patterns/pattern_parser.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

const OnigUChar* bytes_of(const char* at) {
  return reinterpret_cast<const OnigUChar*>(at);
}

std::string words_of(int error, OnigErrorInfo* info = nullptr) {
  OnigUChar words[ONIG_MAX_ERROR_MESSAGE_LEN];
  const int size = onig_error_code_to_str(words, error, info);
  return {reinterpret_cast<const char*>(words), static_cast<size_t>(size)};
}

void initialize() {
  static const int kError = [] {
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    return onig_initialize(encodings, 1);
  }();
  if (kError != ONIG_NORMAL) fail(ErrorKind::kDevice, "Oniguruma does not start: ", words_of(kError));
}

struct FreeRegion {
  void operator()(OnigRegion* region) const { onig_region_free(region, 1); }
};

class Pattern final : public OnigurumaPattern {
 public:
  explicit Pattern(const std::string& regex) {
    initialize();
    OnigErrorInfo info{};
    const char* const begin = regex.data();
    const int error = onig_new(&regex_, bytes_of(begin), bytes_of(begin + regex.size()), ONIG_OPTION_NONE,
                               ONIG_ENCODING_UTF8, ONIG_SYNTAX_DEFAULT, &info);
    if (error != ONIG_NORMAL) throw UnsupportedPattern{words_of(error, &info)};
  }
  ~Pattern() override { onig_free(regex_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  void each_match(std::string_view utf8, const TakeMatch& take) const override {
    if (utf8.size() >= INT_MAX)
      fail(ErrorKind::kData, "a text of ", utf8.size(), " bytes is too long for Oniguruma; at most ",
           INT_MAX - 1, " can be split");
    const std::unique_ptr<OnigRegion, FreeRegion> region(onig_region_new());
    size_t from = 0, last_end = SIZE_MAX;
    while (from <= utf8.size() && search(utf8, from, region.get())) {
      const auto begin = static_cast<size_t>(region->beg[0]), end = static_cast<size_t>(region->end[0]);
      if (begin == end && end == last_end) {
        // Nothing at the end of another match is no match: the search goes on after the next character.
        from = end < utf8.size() ? end + code_point_at(utf8.substr(end)).bytes : end + 1;
        continue;
      }
      take(begin, end);
      from = last_end = end;
    }
  }

 private:
  /// Whether a match begins at `from` or later.
  bool search(std::string_view utf8, size_t from, OnigRegion* region) const {
    const OnigUChar* const begin = bytes_of(utf8.data());
    const OnigUChar* const end = begin + utf8.size();
    const int found = onig_search(regex_, begin, end, begin + from, end, region, ONIG_OPTION_NONE);
    if (found < 0 && found != ONIG_MISMATCH)
      fail(ErrorKind::kData, "Oniguruma gave up on a match in the text from byte ", from,
           " on: ", words_of(found), "; its matches in this text cannot be found");
    return found != ONIG_MISMATCH;
  }

  regex_t* regex_ = nullptr;
};

}  // namespace
}  // namespace megalith

extern "C" {

/// Throws UnsupportedPattern.
__attribute__((visibility("default"))) void megalith_oniguruma_pattern(
    const std::string& regex, std::unique_ptr<megalith::OnigurumaPattern>& made) {
  made = std::make_unique<megalith::Pattern>(regex);
}
}
