#include "libcore/launch/rank_channel.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/terminal.h"
#include "libcore/hash/hmac.h"
#include "libcore/hash/sha256.h"

namespace megalith {
namespace {

constexpr size_t kLengthBytes = 8, kProofBytes = 64;

uint64_t length_in(std::string_view bytes) {
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i)
    length |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return length;
}

RankSide other_side(RankSide side) {
  return side == RankSide::kFirst ? RankSide::kOther : RankSide::kFirst;
}

}  // namespace

bool may_be_greeting(std::string_view bytes) {
  return bytes.substr(0, kGreeting.size()) == kGreeting.substr(0, bytes.size());
}

ProvenMessages::ProvenMessages(std::string_view token, const Greetings& greetings, RankSide mine)
    : key_(hmac_sha256_hex(token, concat("megalith rendezvous", greetings.first, greetings.other))),
      mine_(mine) {}

std::string ProvenMessages::digest_of(std::string_view bytes) {
  return sha256_hex(bytes);
}

std::string ProvenMessages::proof(RankSide sender, uint64_t number, const std::string& digest) const {
  return hmac_sha256_hex(key_, concat(static_cast<char>(sender), ' ', number, ' ', digest));
}

std::string ProvenMessages::unproven() {
  std::string message(kLengthBytes, '\0');
  return message.append(kProofBytes, '0');
}

std::string ProvenMessages::packed(std::string_view bytes, const std::string& digest) {
  std::string out;
  out.reserve(kLengthBytes + bytes.size() + kProofBytes);
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>(bytes.size() >> shift);
  return out.append(bytes).append(proof(mine_, sent_++, digest));
}

std::optional<std::string> ProvenMessages::take(std::string& received, size_t max) {
  if (received.size() < kLengthBytes) return std::nullopt;
  const uint64_t length = length_in(received);
  if (length > max) fail(ErrorKind::kData, "a message of ", length, " bytes, wanted at most ", max);
  if (received.size() < kLengthBytes + length + kProofBytes) return std::nullopt;
  std::string bytes = received.substr(kLengthBytes, length);
  const std::string_view theirs = std::string_view(received).substr(kLengthBytes + length, kProofBytes);
  if (!same_secret(theirs, proof(other_side(mine_), taken_, digest_of(bytes)))) throw Unproven{};
  ++taken_;
  received.erase(0, kLengthBytes + length + kProofBytes);
  return bytes;
}

void RankChannel::send(std::string_view bytes, Deadline deadline) {
  send(bytes, ProvenMessages::digest_of(bytes), deadline);
}

void RankChannel::send(std::string_view bytes, const std::string& digest, Deadline deadline) {
  socket_.send(messages_->packed(bytes, digest), deadline);
}

std::string RankChannel::receive(size_t max, Deadline deadline) {
  std::string received = socket_.receive(kLengthBytes, deadline);
  if (length_in(received) <= max) received += socket_.receive(length_in(received) + kProofBytes, deadline);
  return *messages_->take(received, max);
}

std::optional<RankChannel> greet_first_rank(Socket socket, std::string_view token, Deadline deadline) {
  const std::string mine = concat(kGreeting, random_bytes(kNonceBytes));
  const std::string from = socket.peer_address();
  std::string theirs;
  try {
    socket.send(mine, deadline);
    theirs = socket.receive(kGreeting.size(), deadline);
    if (theirs == kGreeting) theirs += socket.receive(kNonceBytes, deadline);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kComm) throw;
    return std::nullopt;
  }
  if (theirs.size() != kGreetingBytes)
    fail(ErrorKind::kComm, from, " is not rank 0 of this program: it began with ", quote_name(theirs));
  ProvenMessages messages(token, {.first = theirs, .other = mine}, RankSide::kOther);
  return RankChannel(std::move(socket), std::move(messages));
}

}  // namespace megalith
