#include "libcore/launch/torch_store.h"

#include <cstdint>
#include <cstring>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

// A request is one byte followed by its operands. A text is sent as its length in 8 bytes, then its bytes. In
// a store without a file, keys begin with "/". WAIT is answered with one byte once all keys exist.
constexpr char kValidate = 0, kSet = 1, kGet = 3, kWait = 6;
constexpr uint32_t kMagic = 0x3C85F7CE;
constexpr char kStopWaiting = 0;
constexpr uint64_t kMaxBytes = 8U << 20;  // the largest size of a value, as in the store itself

template <class T>
std::string bytes_of(T value) {
  std::string bytes(sizeof value, '\0');
  for (size_t i = 0; i < sizeof value; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string text(std::string_view value) {
  return bytes_of(uint64_t{value.size()}) + std::string(value);
}

std::string key_text(std::string_view key) {
  return text("/" + std::string(key));
}

}  // namespace

TorchStore::TorchStore(const std::string& host, int port, Deadline deadline)
    : socket_(connect_to(host, port, deadline)), where_(concat(host, ':', port)), deadline_(deadline) {
  socket_.send(kValidate + bytes_of(kMagic), deadline_);
}

void TorchStore::set(std::string_view key, std::string_view value) {
  socket_.send(kSet + key_text(key) + text(value), deadline_);
}

std::string TorchStore::get(std::string_view key) {
  try {
    socket_.send(kWait + bytes_of(uint64_t{1}) + key_text(key), deadline_);
    if (socket_.receive(1, deadline_)[0] != kStopWaiting)
      fail(ErrorKind::kComm, "an answer that torch's store never gives");
    socket_.send(kGet + key_text(key), deadline_);
    const std::string length = socket_.receive(sizeof(uint64_t), deadline_);
    uint64_t bytes = 0;
    for (size_t i = 0; i < length.size(); ++i)
      bytes |= uint64_t{static_cast<unsigned char>(length[i])} << (8 * i);
    if (bytes > kMaxBytes) fail(ErrorKind::kComm, "a value of ", bytes, " bytes");
    return socket_.receive(bytes, deadline_);
  } catch (const Error& error) {
    fail(ErrorKind::kComm, "torchrun's store at ", where_, ", key ", quote(key), ": ", error.what());
  }
}

}  // namespace megalith
