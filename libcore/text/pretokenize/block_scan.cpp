#include "libcore/text/pretokenize/block_scan.h"

#include "libcore/base/error.h"

namespace megalith {
namespace {

constexpr uint8_t kCaseFlags = kScanUpper | kScanLower | kScanMark;
static_assert((kCaseFlags & kScanOther) != 0, "flag_of_lead() leaves out both");

/// The flag of a lead byte: kScanMixedLead, unless all its code points have one class.
uint8_t flag_of_lead(const std::array<uint8_t, 16>& of_kind, uint32_t first, uint32_t count) {
  const auto flag = [&](uint32_t code) { return of_kind[static_cast<size_t>(char_traits(code).kind())]; };
  for (uint32_t i = 1; i < count; ++i)
    if (flag(first + i) != flag(first)) return kScanMixedLead;
  if ((flag(first) & kCaseFlags) == 0) return flag(first);
  return count == 1 ? static_cast<uint8_t>(flag(first) & ~kCaseFlags) : uint8_t{kScanMixedLead};
}

/// Whether a lead byte begins both characters of Han and Kana and others.
bool is_mixed_han(uint32_t byte) {
  return byte == 0xE3 || byte == 0xE4 || byte == 0xE9;
}

}  // namespace

BlockClasses::BlockClasses(KindSet letters, BlockExtra extra) {
  for (size_t kind = 0; kind < of_kind_.size(); ++kind)
    if (kind <= static_cast<size_t>(CharKind::kSymbol) && letters.has(static_cast<CharKind>(kind)))
      of_kind_[kind] = kScanLetter;
  if (extra == BlockExtra::kSegments) of_kind_[static_cast<size_t>(CharKind::kOther)] = kScanOther;
  if (extra == BlockExtra::kCases) {
    of_kind_[static_cast<size_t>(CharKind::kUpper)] |= kScanUpper;
    of_kind_[static_cast<size_t>(CharKind::kLower)] |= kScanLower;
    of_kind_[static_cast<size_t>(CharKind::kMark)] |= kScanMark;
  }
  of_kind_[static_cast<size_t>(CharKind::kNumber)] = kScanNumber;
  of_kind_[static_cast<size_t>(CharKind::kSpace)] = kScanSpace;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (byte < 0x80)
      flags_[byte] = flag_of_lead(of_kind_, byte, 1);
    else if (byte < 0xC0)
      flags_[byte] = kScanContinuation;
    else if (byte < 0xE0)
      flags_[byte] = flag_of_lead(of_kind_, (byte & 0x1F) << 6, 1 << 6);
    else if (byte < 0xF0)
      flags_[byte] = flag_of_lead(of_kind_, (byte & 0x0F) << 12, 1 << 12);
    else
      flags_[byte] = kScanMixedLead;
    if (extra == BlockExtra::kSegments && is_mixed_han(byte)) flags_[byte] = kScanMixedLead;
  }
  flags_['\r'] |= kScanLineEnd;
  flags_['\n'] |= kScanLineEnd;
  flags_[' '] |= kScanBlank;
  flags_['\''] |= kScanApostrophe;
}

const BlockClasses& plain_classes() {
  static const BlockClasses kClasses(KindSet::of(CharKind::kUpper, CharKind::kLower, CharKind::kLetter));
  return kClasses;
}

size_t refuse_endless_piece(std::string_view utf8, std::span<uint32_t>) {
  fail(ErrorKind::kData, "a text holds ", utf8.size(), " bytes without a boundary between words; at most ",
       UINT32_MAX - 128, " can be encoded");
}

}  // namespace megalith
