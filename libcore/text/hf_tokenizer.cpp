#include "libcore/text/hf_tokenizer.h"

#include "libcore/base/error.h"
#include "libcore/text/identity_hash.h"

namespace megalith {
namespace {

/// Added tokens stay with the model where it can look for them itself.
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

/// Added tokens that are looked for in normalized text are normalized themselves, and so are decoded.
HfParts with_normal_tokens(HfParts parts) {
  Normalizer::Scratch scratch;
  for (AddedToken& token : parts.model.normalized_added) {
    token.text = parts.normalizer.apply(token.text, scratch);
    parts.texts.change(static_cast<size_t>(token.id), token.text);
  }
  return parts;
}

}  // namespace

TokenTexts::TokenTexts(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    bytes_ += text;
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
}

std::string_view TokenTexts::operator[](size_t id) const {
  if (const auto changed = changed_.find(id); changed != changed_.end()) return changed->second;
  const size_t begin = id == 0 ? 0 : ends_[id - 1];
  return std::string_view(bytes_).substr(begin, ends_[id] - begin);
}

HfTokenizer::HfTokenizer(HfParts parts) : HfTokenizer(Ready{}, with_normal_tokens(std::move(parts))) {}

HfTokenizer::HfTokenizer(Ready, HfParts parts)
    : raw_added_(added_for(parts, parts.model.raw_added)),
      normalized_added_(added_for(parts, parts.model.normalized_added)),
      core_(core_model(parts)),
      normalizer_(std::move(parts.normalizer)),
      metaspace_(std::move(parts.metaspace)),
      around_(std::move(parts.around)),
      decoder_(std::move(parts.decoder)),
      texts_(std::move(parts.texts)) {}

std::string_view HfTokenizer::spaced(std::string_view utf8, bool is_first, std::string& storage) const {
  if (!metaspace_) return utf8;
  const Metaspace& m = *metaspace_;
  const bool prepends =
      m.prepend == Metaspace::Prepend::kAlways || (m.prepend == Metaspace::Prepend::kFirst && is_first);
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

template <class Text, class Token>
void HfTokenizer::each_part(std::string_view utf8, Text&& text, Token&& token) const {
  for (int32_t id : around_.before) token(id);
  if (normalizer_.empty() && !metaspace_) {
    text(utf8);
  } else {
    Normalizer::Scratch scratch;
    std::string storage;
    raw_added_.split(
        utf8,
        [&](std::string_view part) {
          const bool is_first = part.data() == utf8.data();
          const std::string_view normal = normalizer_.apply(part, scratch);
          normalized_added_.split(
              normal,
              [&](std::string_view rest) {
                text(spaced(rest, is_first && rest.data() == normal.data(), storage));
              },
              token);
        },
        token);
  }
  for (int32_t id : around_.after) token(id);
}

void HfTokenizer::encode(std::string_view utf8, std::vector<int32_t>& ids) const {
  each_part(
      utf8, [&](std::string_view text) { core_.encode(text, ids); }, [&](int32_t id) { ids.push_back(id); });
}

void HfTokenizer::encode_to(std::string_view utf8, IdBuffer& out) const {
  each_part(
      utf8, [&](std::string_view text) { core_.encode_to(text, out); },
      [&](int32_t id) {
        out.append({&id, 1});
      });
}

void HfTokenizer::encode_in_pieces(std::string_view utf8, const TakeIds& take) const {
  each_part(
      utf8, [&](std::string_view text) { core_.encode_in_pieces(text, take); },
      [&](int32_t id) {
        take({&id, 1});
      });
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
  // The decoder changes no ids. Where nothing else is around the model, neither does this class.
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
