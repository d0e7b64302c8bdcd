#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "libcore/hash/sha256.h"

namespace megalith {

/// Hash of a list of texts and numbers, for Tokenizer::hash(). Lengths are hashed too, so that texts that are
/// cut differently differ.
class IdentityHash {
 public:
  void add(std::string_view text) {
    add(static_cast<int64_t>(text.size()));
    hash_.update(text.data(), text.size());
  }
  void add(int64_t number) { hash_.update(&number, sizeof number); }
  std::string hex() { return hash_.hex(); }

 private:
  Sha256 hash_;
};

}  // namespace megalith
