#include "libcore/text/formats/hf_tokenizer.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/utf8.h"
#include "libcore/text/identity_hash.h"
#include "libcore/text/unicode/char_traits.h"
#include "libcore/text/unicode/python_text.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

/// Whether the model looks for added tokens itself.
bool model_finds_added(const HfParts& parts) {
  return parts.normalizer.empty() && !parts.metaspace && std::holds_alternative<ByteLevelModel>(parts.model);
}

CoreModel core_model(HfParts& parts) {
  CoreModel model = std::move(parts.model);
  if (!model_finds_added(parts))
    std::visit(
        [](auto& m) {
          m.raw_added.clear();
          m.normalized_added.clear();
        },
        model);
  return model;
}

/// The tokens that this tokenizer looks for.
AddedTokens added_for(const HfParts& parts, bool normalized) {
  if (model_finds_added(parts)) return {};
  return std::visit(
      [&](const auto& model) { return AddedTokens(normalized ? model.normalized_added : model.raw_added); },
      parts.model);
}

/// Normalizes the added tokens that are looked for in normalized text; decode() writes them in that form too.
HfParts with_normal_tokens(HfParts parts) {
  Normalizer::Scratch scratch;
  const auto normalize = [&](std::vector<AddedToken>& tokens) {
    for (AddedToken& token : tokens) {
      token.text = parts.normalizer.apply(token.text, scratch);
      parts.texts.change(static_cast<size_t>(token.id), token.text);
    }
  };
  std::visit([&](auto& model) { normalize(model.normalized_added); }, parts.model);
  return parts;
}

/// Whether the model decodes as the decoder says: its tokens are bytes, which are only put together.
bool model_decodes(const HfParts& parts) {
  const auto* const model = std::get_if<ByteLevelModel>(&parts.model);
  const auto& steps = parts.decoder.steps();
  return model && !model->characters && !parts.texts.changed() && steps.size() == 1 &&
         std::holds_alternative<TokenDecoder::ByteLevel>(steps[0]);
}

/// The normalizer for a model in which a blank stands for the mark that the last step writes for blanks
/// (ByteLevelModel::mark): blanks stay, and it is marks in a text that are replaced.
Normalizer with_blanks(const Normalizer& written, const CoreModel& core) {
  const auto* const model = std::get_if<ByteLevelModel>(&core);
  if (!model || model->mark.empty() || written.empty()) return written;
  std::vector<Normalizer::Step> steps = written.steps();
  steps.back() = Normalizer::Replace{model->mark, " "};
  if (steps.size() > 1)
    if (auto* const prepend = std::get_if<Normalizer::Prepend>(&steps[steps.size() - 2]))
      prepend->text = replaced(prepend->text, model->mark, " ");
  return Normalizer(std::move(steps));
}

bool ends_with_space(std::string_view utf8) {
  return is_space(code_point_at(utf8.substr(character_begin(utf8, utf8.size() - 1))).value);
}

}  // namespace

HfTokenizer::HfTokenizer(HfParts parts) : HfTokenizer(Ready{}, with_normal_tokens(std::move(parts))) {}

HfTokenizer::HfTokenizer(Ready, HfParts parts)
    : core_finds_added_(model_finds_added(parts)),
      core_decodes_(model_decodes(parts)),
      raw_added_(added_for(parts, false)),
      normalized_added_(added_for(parts, true)),
      written_(parts.normalizer),
      normalizer_(with_blanks(written_, parts.model)),
      core_(make_core(core_model(parts))),
      stream_normalizer_(StreamNormalizer::of(normalizer_)),
      metaspace_(std::move(parts.metaspace)),
      around_(std::move(parts.around)),
      decoder_(std::move(parts.decoder)),
      texts_(std::move(parts.texts)) {}

std::string_view HfTokenizer::spaced(std::string_view utf8, Position position, std::string& storage) const {
  if (!metaspace_) return utf8;
  const Metaspace& m = *metaspace_;
  const bool prepends = position.begins && (m.prepend == Metaspace::Prepend::kAlways ||
                                            (m.prepend == Metaspace::Prepend::kFirst && position.first));
  storage.clear();
  if (m.words) {
    append_words(utf8, position.begins, storage);
    return storage;
  }
  if (prepends && !utf8.starts_with(m.mark) && !utf8.starts_with(' ')) storage = m.mark;
  for (size_t blank = utf8.find(' '); blank != std::string_view::npos; blank = utf8.find(' ')) {
    storage += utf8.substr(0, blank);
    storage += m.mark;
    utf8.remove_prefix(blank + 1);
  }
  storage += utf8;
  return storage;
}

/// Appends the words of a text, each with a mark. `begins`: whether a word begins at the start of the text.
void HfTokenizer::append_words(std::string_view utf8, bool begins, std::string& out) const {
  for (size_t at = 0; at < utf8.size();) {
    const CodePoint c = code_point_at(utf8.substr(at));
    const bool separates = is_space(c.value);
    if (!separates && begins && !utf8.substr(at).starts_with(metaspace_->mark)) out += metaspace_->mark;
    if (!separates) out += utf8.substr(at, c.bytes);
    begins = separates;
    at += c.bytes;
  }
}

/// Encodes a long part of a text with little memory. Returns false, and does nothing, if the model needs it
/// as a whole.
template <class Text, class Ids>
bool HfTokenizer::encode_as_stream(std::string_view utf8, bool is_first, Text&& text, Ids&& ids) const {
  const std::unique_ptr<CoreTokenizer::Stream> stream = core_->stream({.text = text, .ids = ids});
  if (!stream) return false;
  Normalizer::Scratch scratch;
  std::string storage;
  bool begins = true;  // whether a word may begin here
  for (bool begins_text = true; !utf8.empty(); begins_text = false) {
    const std::string_view part = stream_normalizer_->next(utf8, CoreTokenizer::kPartBytes);
    utf8.remove_prefix(part.size());
    const std::string_view normal =
        stream_normalizer_->normalizer(begins_text, utf8.empty()).apply(part, scratch);
    if (normal.empty()) continue;
    stream->add(spaced(normal, {.begins = begins, .first = is_first}, storage));
    begins = metaspace_ && metaspace_->words && ends_with_space(normal);
  }
  stream->finish();
  return true;
}

template <class Text, class Ids>
void HfTokenizer::each_part(std::string_view utf8, Memory& memory, Text&& text, Ids&& ids) const {
  const auto token = [&](int32_t id) { ids(std::span<const int32_t>(&id, 1)); };
  for (int32_t id : around_.before) token(id);
  if (core_finds_added_) {
    text(utf8);
  } else {
    const bool as_stream = stream_normalizer_ && normalized_added_.empty();
    raw_added_.split(
        utf8,
        [&](std::string_view part) {
          const bool is_first = part.data() == utf8.data();
          if (as_stream && part.size() > CoreTokenizer::kLongText &&
              encode_as_stream(part, is_first, text, ids))
            return;
          const std::string_view normal = normalizer_.apply(part, memory.scratch);
          normalized_added_.split(
              normal,
              [&](std::string_view rest) {
                const bool first = is_first && rest.data() == normal.data();
                text(spaced(rest, {.begins = true, .first = first}, memory.spaced));
              },
              token);
        },
        token);
  }
  for (int32_t id : around_.after) token(id);
}

void HfTokenizer::encode(std::string_view utf8, std::vector<int32_t>& ids) const {
  Memory memory;
  each_part(
      utf8, memory, [&](std::string_view text) { core_->encode(text, ids); },
      [&](std::span<const int32_t> more) { ids.insert(ids.end(), more.begin(), more.end()); });
}

void HfTokenizer::encode_to(std::string_view utf8, IdBuffer& out) const {
  Memory memory;
  each_part(
      utf8, memory, [&](std::string_view text) { core_->encode_to(text, out); },
      [&](std::span<const int32_t> more) { out.append(more); });
}

void HfTokenizer::encode_in_parts(std::string_view utf8, const TakeIds& take) const {
  Memory memory;
  each_part(
      utf8, memory, [&](std::string_view text) { core_->encode_in_parts(text, take); }, take);
}

void HfTokenizer::encode_all(std::span<const std::string_view> texts, IdBuffer& out) const {
  Memory memory;
  core_->encode_all_with(
      [&](std::string_view text, const auto& plain, const auto& ids) { each_part(text, memory, plain, ids); },
      texts, out);
}

std::string HfTokenizer::decode(std::span<const int32_t> ids) const {
  if (core_decodes_) return core_->decode(ids);
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (int32_t id : ids) {
    if (id < 0 || id >= vocab_size()) refuse_token_id(id, texts_.size());
    // An id without a token has no text, as in Hugging Face's tokenizers.
    if (const auto& text = texts_[static_cast<size_t>(id)]; !text.empty()) tokens.emplace_back(text);
  }
  return decoder_.decode(std::move(tokens));
}

void HfTokenizer::decode_all(std::span<const int32_t> ids, ByteBuffer& out) const {
  if (core_decodes_) return core_->decode_all(ids, out);
  joined_.decode_all(*this, ids, out, [&] { return JoinedDecoder::of(decoder_, texts_); });
}

namespace {

void add_step(IdentityHash& hash, const Normalizer::Nfc&) {
  hash.add("NFC");
}
void add_step(IdentityHash& hash, const Normalizer::Nfkc&) {
  hash.add("NFKC");
}
void add_step(IdentityHash& hash, const Normalizer::Decompose& step) {
  hash.add(step.form == Decomposition::kNfd ? "NFD" : "NFKD");
}
void add_step(IdentityHash& hash, const Normalizer::StripAccents&) {
  hash.add("StripAccents");
}
void add_step(IdentityHash& hash, const Normalizer::Lowercase&) {
  hash.add("Lowercase");
}
void add_step(IdentityHash& hash, const Normalizer::Nmt&) {
  hash.add("Nmt");
}
void add_step(IdentityHash& hash, const Normalizer::JoinBlanks& step) {
  hash.add("JoinBlanks");
  hash.add(step.to);
}
void add_step(IdentityHash& hash, const Normalizer::Strip& step) {
  hash.add("Strip");
  hash.add(int64_t{step.left});
  hash.add(int64_t{step.right});
}
void add_step(IdentityHash& hash, const Normalizer::Precompiled& step) {
  hash.add("Precompiled");
  hash.add(step.identity);
}
void add_step(IdentityHash& hash, const BertNormal& step) {
  const BertRules& rules = step.rules();
  hash.add("BertNormalizer");
  for (const bool rule : {rules.clean, rules.space_ideographs, rules.strip_accents, rules.lower})
    hash.add(int64_t{rule});
}
void add_step(IdentityHash& hash, const Normalizer::Prepend& step) {
  hash.add("Prepend");
  hash.add(step.text);
}
void add_step(IdentityHash& hash, const Normalizer::Replace& step) {
  hash.add("Replace");
  hash.add(step.from);
  hash.add(step.to);
}

void add_step(IdentityHash& hash, const Normalizer::ReplaceMatches& step) {
  hash.add("ReplaceMatches");
  hash.add(step.regex);
  hash.add(step.to);
}

}  // namespace

std::string HfTokenizer::hash() const {
  // The decoder does not affect ids. So if there is nothing else around the model, all ids are those of
  // core_.
  if (core_finds_added_ && around_.before.empty() && around_.after.empty()) return core_->hash();
  IdentityHash hash;
  hash.add(core_->hash());
  raw_added_.add_to(hash);
  normalized_added_.add_to(hash);
  for (const Normalizer::Step& step : written_.steps())
    std::visit([&](const auto& s) { add_step(hash, s); }, step);
  if (metaspace_) {
    hash.add(metaspace_->mark);
    hash.add(static_cast<int64_t>(metaspace_->prepend));
    if (metaspace_->words) hash.add("words");
  }
  for (const auto* side : {&around_.before, &around_.after}) {
    hash.add(static_cast<int64_t>(side->size()));
    for (int32_t id : *side) hash.add(int64_t{id});
  }
  return hash.hex();
}

}  // namespace megalith
