#include "libcore/parallel/silent_comm.h"

#include <utility>

namespace megalith {

SilentComm::SilentComm(std::string name, int rank, int size)
    : rank_(rank), size_(size), name_(std::move(name)) {}

std::vector<std::string> SilentComm::exchange(std::string_view mine) {
  return std::vector<std::string>(static_cast<size_t>(size_), std::string(mine));
}

std::unique_ptr<Communicator> SilentComm::split(const GroupName& name, int, int) {
  return make_self_comm(name.text);
}

void SilentComm::add_parts(const View& whole, const Places& places) {
  add(whole.bytes() / static_cast<size_t>(size_) * static_cast<size_t>(places.last - places.first));
}

}  // namespace megalith
