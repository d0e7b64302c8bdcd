#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "libcore/base/shared_array.h"
#include "libcore/io/cache/build_cache.h"
#include "libcore/text/formats/byte_level_tokenizer.h"
#include "libcore/text/unigram/unigram_tokenizer.h"
#include "libcore/text/wordpiece/wordpiece_tokenizer.h"

namespace megalith {

/// Stores arrays of plain numbers one after the other, each preceded by its number of elements and aligned to
/// kAlignment, so that a later run can use them in the mapped file. Rebuilding a tokenizer's tables took 4
/// ms; verifying the file's hash takes 0.3.
class Packer {
 public:
  static constexpr size_t kAlignment = 64;
  template <class T>
  void add(std::span<const T> values) {
    static_assert(std::has_unique_object_representations_v<T>, "no byte may be padding");
    const uint64_t count = values.size();
    out_.resize(out_.size() + padding(out_.size()));
    out_.append(reinterpret_cast<const char*>(&count), sizeof count);
    out_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  void add(std::string_view text) { add(std::span<const char>(text)); }
  std::string take() { return std::move(out_); }

  /// The number of zero bytes before an array's number of elements.
  static size_t padding(size_t bytes_before) {
    return (2 * kAlignment - (bytes_before + sizeof(uint64_t)) % kAlignment) % kAlignment;
  }

 private:
  std::string out_;
};

/// Reads what a Packer wrote, in the same order.
class Unpacker {
 public:
  /// `owner` keeps the packed bytes alive.
  Unpacker(std::string_view packed, std::shared_ptr<const void> owner)
      : rest_(packed), size_(packed.size()), owner_(std::move(owner)) {}

  template <class T>
  std::vector<T> array() {
    const std::string_view bytes = take(sizeof(T));
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  /// The next array in place, if it is aligned as T requires.
  template <class T>
  SharedArray<T> shared() {
    const std::string_view bytes = take(sizeof(T));
    if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(T) != 0) whole_ = false;
    if (!whole_) return {};
    return {{reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)}, owner_};
  }
  /// The next array as text, valid as long as the packed bytes.
  std::string_view text() { return take(1); }

  /// Whether every array that was read was complete and no bytes are left.
  bool whole() const { return whole_ && rest_.empty(); }

 private:
  /// The bytes of the next array, with elements of `size` bytes; empty if it is incomplete.
  std::string_view take(size_t size);

  std::string_view rest_;
  size_t size_;
  std::shared_ptr<const void> owner_;
  bool whole_ = true;
};

void pack(const TokenTexts& texts, Packer& out);
/// Reads packed texts; nothing if they are damaged.
std::optional<TokenTexts> unpack_texts(Unpacker& in);

/// Packs a model that has `tables`, without its `find_pretokens`: a function cannot be stored. kInternal if
/// it has no tables.
void pack(const ByteLevelModel& model, Packer& out);
void pack(const UnigramModel& model, Packer& out);
void pack(const WordPieceModel& model, Packer& out);
/// Reads a packed model; nothing if parts are damaged or contradict each other.
std::optional<ByteLevelModel> unpack_model(Unpacker& in);
std::optional<UnigramModel> unpack_unigram_model(Unpacker& in);
std::optional<WordPieceModel> unpack_wordpiece_model(Unpacker& in);

/// The model of a tokenizer whose files may hold any kind.
using CoreModel = std::variant<ByteLevelModel, UnigramModel, WordPieceModel>;
/// Its tokenizer, which looks for added tokens only if it is a ByteLevelTokenizer.
std::unique_ptr<CoreTokenizer> make_core(CoreModel model);
/// A copy of `model` without what its tokenizer's tables replace: tokens, merges, scores. (The model is not
/// const because these are moved aside.)
CoreModel copy_to_pack(CoreModel& model);
/// Packs `model` with the tables of `core`, its tokenizer.
void pack(CoreModel model, const CoreTokenizer& core, Packer& out);
std::optional<CoreModel> unpack_core(Unpacker& in);
/// The number of its ids, for a model that was unpacked.
size_t packed_size(const CoreModel& model);

/// The cache file for the model computed from `files` with `settings`; the contents of `files` and the
/// settings decide its name. Nothing if `files` are small (reading them is as fast) or not regular files
/// (which can be read only once). Throws kNoInput, kIo, kData for a file that is too large, and Stopped.
/// `kind` names the reader that makes the model ("gpt2"); the version is appended.
std::optional<CachedFile> kept_file(std::string_view kind, std::span<const std::string> files,
                                    std::span<const std::string> settings);

/// The tokenizer of the model that is stored in the file `kept`, with `find` as its find_pretokens. If no
/// model is stored there, the tokenizer of the model that `read` returns, which is then stored for later
/// runs.
std::unique_ptr<ByteLevelTokenizer> kept_tokenizer(const std::optional<CachedFile>& kept,
                                                   const FindPretokens& find,
                                                   const std::function<ByteLevelModel()>& read);

}  // namespace megalith
