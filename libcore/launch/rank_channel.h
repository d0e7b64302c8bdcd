#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "libcore/launch/socket.h"

namespace megalith {

/// How a connection between rank 0 and another rank begins. Each side first sends a greeting: "MGLRDZV2",
/// then 32 random bytes that it has drawn for this connection.
constexpr std::string_view kGreeting = "MGLRDZV2";
constexpr size_t kNonceBytes = 32;
constexpr size_t kGreetingBytes = kGreeting.size() + kNonceBytes;

/// Whether `bytes`, which may be incomplete, are the beginning of a greeting.
bool may_be_greeting(std::string_view bytes);

enum class RankSide : char { kFirst = '0', kOther = '1' };  // rank 0, any other rank

/// Thrown for a message without a valid proof.
struct Unproven {};

/// Messages over one connection. Each one carries a proof that its sender knows the job token: HMAC-SHA-256
/// under a key derived from the token and the bytes that both sides drew. The proof covers the sender's side,
/// the message's number on the connection and the message's bytes. So a message from another connection, an
/// earlier one or one that was sent the other way proves nothing. With an empty token anybody can compute the
/// proofs.
///
/// On the wire: the length in 8 bytes (little-endian), the bytes, 64 hexadecimal digits of proof.
class ProvenMessages {
 public:
  struct Greetings {
    std::string_view first, other;  // the greetings of rank 0 and of the other rank
  };
  ProvenMessages(std::string_view token, const Greetings&, RankSide mine);

  /// Packs `bytes` as the next message that this side sends.
  std::string packed(std::string_view bytes) { return packed(bytes, digest_of(bytes)); }
  /// As above, but the caller passes digest_of(bytes), so that it is computed only once for many receivers.
  std::string packed(std::string_view bytes, const std::string& digest);
  static std::string digest_of(std::string_view bytes);
  /// An empty message without a proof: the answer to a peer that did not prove itself. The answer tells the
  /// peer nothing about the token.
  static std::string unproven();

  /// Removes the other side's next message from the beginning of `received` and returns it; nothing while the
  /// message is incomplete. kData for a message of more than `max` bytes; Unproven for one without a valid
  /// proof.
  std::optional<std::string> take(std::string& received, size_t max);

 private:
  std::string proof(RankSide sender, uint64_t number, const std::string& digest) const;

  std::string key_;
  RankSide mine_;
  uint64_t sent_ = 0, taken_ = 0;
};

/// A connection over which both sides have sent their greetings. Calls wait until their deadline. They throw
/// kComm as Socket does, kData for a message that is too long, and Unproven.
class RankChannel {
 public:
  RankChannel() = default;
  RankChannel(Socket socket, ProvenMessages messages)
      : socket_(std::move(socket)), messages_(std::move(messages)) {}
  bool open() const { return socket_.open(); }
  const Socket& socket() const { return socket_; }
  void send(std::string_view bytes, Deadline);
  void send(std::string_view bytes, const std::string& digest, Deadline);
  std::string receive(size_t max, Deadline);

 private:
  Socket socket_;
  std::optional<ProvenMessages> messages_;
};

/// Exchanges greetings with rank 0; to be called by the other ranks. Nothing if the peer closed the
/// connection or sent nothing before the deadline; kComm if the peer is not a rank.
std::optional<RankChannel> greet_first_rank(Socket, std::string_view token, Deadline);

}  // namespace megalith
