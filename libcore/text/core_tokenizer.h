#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "libcore/text/tokenizer.h"

namespace megalith {

/// The model of a tokenizer: makes ids of texts that the stages before it, such as a normalizer, have
/// prepared.
class CoreTokenizer : public Tokenizer {
 public:
  static constexpr size_t kLongText = size_t{1} << 20;   // shorter texts need no stream
  static constexpr size_t kPartBytes = size_t{1} << 16;  // a good size for the parts of a stream

  /// Encodes a text that arrives in parts, so that it need not be in memory as a whole.
  class Stream {
   public:
    virtual ~Stream() = default;
    /// Adds the next part of the text, which must consist of whole characters.
    virtual void add(std::string_view part) = 0;
    /// Ends the text.
    virtual void finish() = 0;
  };
  struct Takers {
    std::function<void(std::string_view)> text;  // encodes parts that can be encoded separately
    TakeIds ids;                                 // takes the ids of the others
  };
  /// Keeps a reference to the tokenizer. Null if the model needs a text as a whole.
  virtual std::unique_ptr<Stream> stream(Takers take) const = 0;

  /// Encodes many texts, short ones together.
  class Batch {
   public:
    virtual ~Batch() = default;
    /// Adds the ids that encode_to() gives for a text, which may change afterwards.
    virtual void add(std::string_view text) = 0;
    /// Adds these ids.
    virtual void put(std::span<const int32_t> ids) = 0;
    /// Appends all ids that were added to the batch's IdBuffer, in order.
    virtual void finish() = 0;
  };
  /// Keeps references to the tokenizer and to `out`, whose ids have 4 bytes.
  virtual std::unique_ptr<Batch> batch(IdBuffer& out) const;
  void encode_all(std::span<const std::string_view> texts, IdBuffer& out) const override;
  /// Does the encode_all() of a tokenizer with stages before its model: each_part(text, plain, ids) calls
  /// plain(std::string_view) for each part of a text that the model encodes, and
  /// ids(std::span<const int32_t>) for ids that are found without it.
  template <class EachPart>
  void encode_all_with(const EachPart& each_part, std::span<const std::string_view> texts,
                       IdBuffer& out) const {
    const std::unique_ptr<Batch> together = batch(out);
    for (const std::string_view text : texts) {
      each_part(
          text, [&](std::string_view part) { together->add(part); },
          [&](std::span<const int32_t> ids) { together->put(ids); });
      together->put({&kTextEnd, 1});
    }
    together->finish();
  }

 protected:
  /// Throws the kData of eod().
  [[noreturn]] static void fail_without_end(const std::string& name);
};

}  // namespace megalith
