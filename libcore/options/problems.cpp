#include "libcore/options/problems.h"

namespace megalith {

void Phrase::append(const Opt& option) {
  text_.append("--").append(option.name);
  options_.emplace_back(option.name);
}

void Phrase::append(const Phrase& phrase) {
  text_ += phrase.text_;
  options_.insert(options_.end(), phrase.options_.begin(), phrase.options_.end());
}

std::string Problem::message() const {
  std::string all = text;
  if (!wanted.empty()) all += concat(' ', found, ": wanted ", wanted);
  if (!note.empty()) all += concat(" (", note, ')');
  return all;
}

void Problems::append(const std::string& place, const Phrase& phrase) {
  list_.push_back({.text = phrase.text(), .place = place, .options = phrase.options()});
}

std::string Problems::text(std::string_view between) const {
  std::string all;
  for (const Problem& problem : list_) all.append(all.empty() ? "" : between).append(problem.message());
  return all;
}

void Problems::throw_if_any(ErrorKind kind) const {
  if (!list_.empty()) throw Error(kind, text("\n  "));
}

}  // namespace megalith
