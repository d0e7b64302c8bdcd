#include "libcore/text/bpe/token_texts.h"

#include <algorithm>

namespace megalith {

TokenTexts::TokenTexts(const std::vector<std::string>& texts) {
  std::vector<char> bytes;
  std::vector<uint32_t> ends;
  for (const std::string& text : texts) {
    bytes.insert(bytes.end(), text.begin(), text.end());
    ends.push_back(static_cast<uint32_t>(bytes.size()));
  }
  bytes_ = SharedArray(std::move(bytes));
  ends_ = SharedArray(std::move(ends));
}

bool TokenTexts::fit(const SharedArray<char>& bytes, const SharedArray<uint32_t>& ends) {
  return std::is_sorted(ends.begin(), ends.end()) &&
         (ends.empty() ? 0 : ends[ends.size() - 1]) == bytes.size();
}

}  // namespace megalith
