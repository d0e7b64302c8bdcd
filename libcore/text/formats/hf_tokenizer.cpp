#include "libcore/text/formats/hf_tokenizer.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/text/formats/pretoken_stream.h"
#include "libcore/text/identity_hash.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

/// Whether the model can look for added tokens itself, which saves a pass over the text.
bool model_finds_added(const HfParts& parts) {
  return parts.normalizer.empty() && !parts.metaspace;
}

ByteLevelModel core_model(HfParts& parts) {
  ByteLevelModel model = std::move(parts.model);
  if (!model_finds_added(parts)) {
    model.raw_added.clear();
    model.normalized_added.clear();
  }
  return model;
}

std::vector<AddedToken> added_for(const HfParts& parts, const std::vector<AddedToken>& tokens) {
  return model_finds_added(parts) ? std::vector<AddedToken>{} : tokens;
}

/// Normalizes the added tokens that are looked for in normalized text; decode() writes them in that form too.
HfParts with_normal_tokens(HfParts parts) {
  Normalizer::Scratch scratch;
  for (AddedToken& token : parts.model.normalized_added) {
    token.text = parts.normalizer.apply(token.text, scratch);
    parts.texts.change(static_cast<size_t>(token.id), token.text);
  }
  return parts;
}

/// The normalizer for the rest of a text whose beginning went through `all`. Nothing if the result depends on
/// the text before, so that the text must be normalized as a whole.
std::optional<Normalizer> continued(const Normalizer& all) {
  std::vector<Normalizer::Step> steps;
  for (const Normalizer::Step& step : all.steps()) {
    if (std::holds_alternative<Normalizer::Prepend>(step)) continue;
    const auto* const replace = std::get_if<Normalizer::Replace>(&step);
    if (!replace || replace->to.empty() || code_point_at(replace->from).bytes != replace->from.size())
      return std::nullopt;
    steps.push_back(step);
  }
  return Normalizer(std::move(steps));
}

}  // namespace

HfTokenizer::HfTokenizer(HfParts parts) : HfTokenizer(Ready{}, with_normal_tokens(std::move(parts))) {}

HfTokenizer::HfTokenizer(Ready, HfParts parts)
    : raw_added_(added_for(parts, parts.model.raw_added)),
      normalized_added_(added_for(parts, parts.model.normalized_added)),
      core_(core_model(parts)),
      normalizer_(std::move(parts.normalizer)),
      continued_(continued(normalizer_)),
      metaspace_(std::move(parts.metaspace)),
      look_ahead_(parts.look_ahead),
      around_(std::move(parts.around)),
      decoder_(std::move(parts.decoder)),
      texts_(std::move(parts.texts)) {}

std::string_view HfTokenizer::spaced(std::string_view utf8, Position position, std::string& storage) const {
  if (!metaspace_) return utf8;
  const Metaspace& m = *metaspace_;
  const bool prepends = position.begins && (m.prepend == Metaspace::Prepend::kAlways ||
                                            (m.prepend == Metaspace::Prepend::kFirst && position.first));
  storage.clear();
  if (prepends && !utf8.starts_with(m.mark) && !utf8.starts_with(' ')) storage = m.mark;
  for (size_t blank = utf8.find(' '); blank != std::string_view::npos; blank = utf8.find(' ')) {
    storage += utf8.substr(0, blank);
    storage += m.mark;
    utf8.remove_prefix(blank + 1);
  }
  storage += utf8;
  return storage;
}

template <class Text, class Ids>
void HfTokenizer::encode_bit_by_bit(std::string_view part, bool is_first, Text&& text, Ids&& ids) const {
  Normalizer::Scratch scratch;
  std::string storage;
  PretokenStream stream(core_, *look_ahead_, {.text = text, .ids = ids});
  const Normalizer* normalizer = &normalizer_;
  for (bool begins = true; !part.empty(); begins = false) {
    const std::string_view bit = first_characters(part, PretokenStream::kBit);
    const std::string_view normal = normalizer->apply(bit, scratch);
    stream.add(spaced(normal, {.begins = begins, .first = is_first}, storage));
    normalizer = &*continued_;
    part.remove_prefix(bit.size());
  }
  stream.finish();
}

template <class Text, class Ids>
void HfTokenizer::each_part(std::string_view utf8, Text&& text, Ids&& ids) const {
  const auto token = [&](int32_t id) { ids(std::span<const int32_t>(&id, 1)); };
  for (int32_t id : around_.before) token(id);
  if (normalizer_.empty() && !metaspace_) {
    text(utf8);
  } else {
    Normalizer::Scratch scratch;
    std::string storage;
    const bool in_bits = continued_ && look_ahead_ && normalized_added_.empty();
    raw_added_.split(
        utf8,
        [&](std::string_view part) {
          const bool is_first = part.data() == utf8.data();
          if (in_bits && part.size() > PretokenStream::kLongText)
            return encode_bit_by_bit(part, is_first, text, ids);
          const std::string_view normal = normalizer_.apply(part, scratch);
          normalized_added_.split(
              normal,
              [&](std::string_view rest) {
                const bool first = is_first && rest.data() == normal.data();
                text(spaced(rest, {.begins = true, .first = first}, storage));
              },
              token);
        },
        token);
  }
  for (int32_t id : around_.after) token(id);
}

void HfTokenizer::encode(std::string_view utf8, std::vector<int32_t>& ids) const {
  each_part(
      utf8, [&](std::string_view text) { core_.encode(text, ids); },
      [&](std::span<const int32_t> more) { ids.insert(ids.end(), more.begin(), more.end()); });
}

void HfTokenizer::encode_to(std::string_view utf8, IdBuffer& out) const {
  each_part(
      utf8, [&](std::string_view text) { core_.encode_to(text, out); },
      [&](std::span<const int32_t> more) { out.append(more); });
}

void HfTokenizer::encode_in_parts(std::string_view utf8, const TakeIds& take) const {
  each_part(
      utf8, [&](std::string_view text) { core_.encode_in_parts(text, take); }, take);
}

std::string HfTokenizer::decode(std::span<const int32_t> ids) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (int32_t id : ids) {
    if (id < 0 || id >= vocab_size() || texts_[static_cast<size_t>(id)].empty())
      fail(ErrorKind::kData, "token id ", id, " is not in the vocabulary; ids are 0 to ", vocab_size() - 1);
    tokens.emplace_back(texts_[static_cast<size_t>(id)]);
  }
  return decoder_.decode(std::move(tokens));
}

namespace {

void add_step(IdentityHash& hash, const Normalizer::Nfc&) {
  hash.add("NFC");
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

}  // namespace

std::string HfTokenizer::hash() const {
  // The decoder does not affect ids. So if there is nothing else around the model, all ids are those of
  // core_.
  if (normalizer_.empty() && !metaspace_ && around_.before.empty() && around_.after.empty())
    return core_.hash();
  IdentityHash hash;
  hash.add(core_.hash());
  raw_added_.add_to(hash);
  normalized_added_.add_to(hash);
  for (const Normalizer::Step& step : normalizer_.steps())
    std::visit([&](const auto& s) { add_step(hash, s); }, step);
  if (metaspace_) {
    hash.add(metaspace_->mark);
    hash.add(static_cast<int64_t>(metaspace_->prepend));
  }
  for (const auto* side : {&around_.before, &around_.after}) {
    hash.add(static_cast<int64_t>(side->size()));
    for (int32_t id : *side) hash.add(int64_t{id});
  }
  return hash.hex();
}

}  // namespace megalith
