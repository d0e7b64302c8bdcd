#include "libcore/text/unigram/unknown_run.h"

#include <algorithm>

namespace megalith {

UnknownRun::UnknownRun(const UnigramTables& tables, const UnigramRules& rules)
    : trie_(tables.trie), rules_(rules) {
  const auto has_token = [](int32_t id) { return id >= 0; };
  has_all_bytes_ = std::all_of(rules.bytes.begin(), rules.bytes.end(), has_token);
  has_no_bytes_ = std::none_of(rules.bytes.begin(), rules.bytes.end(), has_token);
  if (rules.looks_up_runs) longest_ = tables.longest();
}

void UnknownRun::add(std::string_view text, std::vector<int32_t>& ids) {
  is_open_ = true;
  if (is_long_ && has_no_bytes_) return;
  text_ += text;
  is_long_ = is_long_ || text_.size() > longest_;
  if (!is_long_) return;
  if (has_all_bytes_) append_bytes(ids);
  if (has_all_bytes_ || has_no_bytes_) text_.clear();
}

void UnknownRun::finish(std::vector<int32_t>& ids) {
  if (!is_open_) return;
  const int32_t token = is_long_ ? -1 : trie_.find(text_);
  if (token >= 0 && rules_.looks_up_runs)
    ids.push_back(token);
  else if (has_no_bytes_ || !append_bytes(ids))
    ids.push_back(rules_.unknown);
  clear();
}

void UnknownRun::clear() {
  is_open_ = is_long_ = false;
  text_.clear();
}

/// Appends the ids of the bytes of text_, if all of them have one, and returns whether they do.
bool UnknownRun::append_bytes(std::vector<int32_t>& ids) const {
  const auto id_of = [&](char byte) { return rules_.bytes[static_cast<uint8_t>(byte)]; };
  if (std::any_of(text_.begin(), text_.end(), [&](char byte) { return id_of(byte) < 0; })) return false;
  for (const char byte : text_) ids.push_back(id_of(byte));
  return true;
}

}  // namespace megalith
