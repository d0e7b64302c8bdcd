#include <utility>

#include "libcore/base/error.h"
#include "libcore/parallel/communicator.h"

namespace megalith {
namespace {

class SelfComm final : public Communicator {
 public:
  explicit SelfComm(std::string name) : name_(std::move(name)) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::string& name() const override { return name_; }

  void all_reduce(Stream&, View, Reduce) override {}
  void all_gather(Stream& stream, View out, ConstView mine) override { copy_if_apart(stream, out, mine); }
  void reduce_scatter(Stream& stream, View mine, ConstView in, Reduce) override {
    copy_if_apart(stream, mine, in);
  }
  void all_to_all(Stream& stream, View out, ConstView in) override { copy_if_apart(stream, out, in); }
  void broadcast(Stream&, View, int) override {}
  void gather_parts(Stream&, View, const Places&) override {}
  void reduce_parts(Stream&, View, Reduce, const Places&) override {}
  void set_send_slots(View, int) override {}  // a group of one sends no messages
  void send(Stream&, ConstView, int peer) override { refuse("send to", peer); }
  void recv(Stream&, View, int peer) override { refuse("receive from", peer); }
  std::vector<std::string> exchange(std::string_view mine) override { return {std::string(mine)}; }
  std::unique_ptr<Communicator> split(const GroupName& name, int, int) override {
    return make_self_comm(name.text);
  }
  void abort(const std::string&) override {}

 private:
  static void copy_if_apart(Stream& stream, View to, ConstView from) {
    if (to.data != from.data) stream.copy(to, from);
  }
  [[noreturn]] void refuse(const char* call, int peer) const {
    fail(ErrorKind::kInternal, name_, ": a group of one cannot ", call, " rank ", peer);
  }

  std::string name_;
};

}  // namespace

std::unique_ptr<Communicator> make_self_comm(std::string name) {
  return std::make_unique<SelfComm>(std::move(name));
}

}  // namespace megalith
