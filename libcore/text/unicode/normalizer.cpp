#include "libcore/text/unicode/normalizer.h"

#include "libcore/base/error.h"
#include "libcore/text/unicode/nfc.h"

namespace megalith {
namespace {

std::string_view apply_step(const Normalizer::Nfc&, std::string_view utf8, std::string& out, size_t) {
  return to_nfc(utf8, out);
}

std::string_view apply_step(const Normalizer::Prepend& step, std::string_view utf8, std::string& out,
                            size_t) {
  if (utf8.empty() || step.text.empty()) return utf8;
  out.assign(step.text);
  out += utf8;
  return out;
}

/// Replaces every occurrence, but stops once the result has more than `max_bytes` bytes.
std::string_view apply_step(const Normalizer::Replace& step, std::string_view utf8, std::string& out,
                            size_t max_bytes) {
  size_t found = utf8.find(step.from);
  if (found == std::string_view::npos) return utf8;
  out.clear();
  while (found != std::string_view::npos && out.size() <= max_bytes) {
    out += utf8.substr(0, found);
    out += step.to;
    utf8.remove_prefix(found + step.from.size());
    found = utf8.find(step.from);
  }
  out += utf8;
  return out;
}

}  // namespace

std::string_view Normalizer::apply(std::string_view utf8, Scratch& scratch) const {
  const size_t given = utf8.size();
  const size_t max_bytes =
      64 * given + (size_t{1} << 16);  // without a limit, a few rounds of doubling would fill any memory
  for (const Step& step : steps_) {
    const std::string_view next =
        std::visit([&](const auto& s) { return apply_step(s, utf8, scratch.next, max_bytes); }, step);
    if (next.data() == utf8.data() && next.size() == utf8.size()) continue;
    if (next.size() > max_bytes)
      fail(ErrorKind::kData, "the tokenizer's normalizer makes more than ", max_bytes, " bytes of a text of ",
           given, "; no language needs that");
    scratch.text.swap(scratch.next);
    utf8 = scratch.text;
  }
  return utf8;
}

}  // namespace megalith
