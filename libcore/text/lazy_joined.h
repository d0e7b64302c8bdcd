#pragma once

#include <mutex>
#include <optional>
#include <span>

#include "libcore/text/tokenizer.h"

namespace megalith {

/// A decoder of many texts at once (JoinedDecoder, JoinedPieces) that is made when many ids come for the
/// first time: making it goes through the whole vocabulary. Thread-safe.
template <class Joined>
class LazyJoined {
 public:
  /// Does decode_all() of `tokenizer`, which decodes texts one by one where they are few, or where make(),
  /// which returns std::optional<Joined>, returns nothing.
  template <class Make>
  void decode_all(const Tokenizer& tokenizer, std::span<const int32_t> ids, ByteBuffer& out,
                  const Make& make) const {
    constexpr size_t kMany = 4096;  // for fewer, making it would take longer than it saves
    if (ids.size() < kMany) return tokenizer.Tokenizer::decode_all(ids, out);
    std::call_once(made_, [&] { joined_ = make(); });
    joined_ ? joined_->decode_all(ids, out) : tokenizer.Tokenizer::decode_all(ids, out);
  }

 private:
  mutable std::once_flag made_;
  mutable std::optional<Joined> joined_;
};

}  // namespace megalith
