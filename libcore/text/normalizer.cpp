#include "libcore/text/normalizer.h"

#include "libcore/text/nfc.h"

namespace megalith {
namespace {

std::string_view apply_step(const Normalizer::Nfc&, std::string_view utf8, std::string& out) {
  return to_nfc(utf8, out);
}

std::string_view apply_step(const Normalizer::Prepend& step, std::string_view utf8, std::string& out) {
  if (utf8.empty() || step.text.empty()) return utf8;
  out.assign(step.text);
  out += utf8;
  return out;
}

std::string_view apply_step(const Normalizer::Replace& step, std::string_view utf8, std::string& out) {
  size_t found = utf8.find(step.from);
  if (found == std::string_view::npos) return utf8;
  out.clear();
  while (found != std::string_view::npos) {
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
  for (const Step& step : steps_) {
    const std::string_view next =
        std::visit([&](const auto& s) { return apply_step(s, utf8, scratch.next); }, step);
    if (next.data() == utf8.data() && next.size() == utf8.size()) continue;
    scratch.text.swap(scratch.next);
    utf8 = scratch.text;
  }
  return utf8;
}

}  // namespace megalith
