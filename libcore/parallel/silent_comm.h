#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/parallel/communicator.h"

namespace megalith {

/// Acts as a group of a given size, so that one process can measure one rank of many. It moves no data, but
/// counts its calls and the bytes of the whole tensors that would be reduced, gathered and scattered.
/// exchange() returns this rank's bytes for every rank; a group that is split off has one rank.
class SilentComm final : public Communicator {
 public:
  SilentComm(std::string name, int rank, int size);
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& name() const override { return name_; }
  size_t bytes() const { return bytes_; }
  int64_t calls() const { return calls_; }

  void all_reduce(Stream&, View view, Reduce) override { add(view.bytes()); }
  void all_gather(Stream&, View out, ConstView) override { add(out.bytes()); }
  void reduce_scatter(Stream&, View, ConstView in, Reduce) override { add(in.bytes()); }
  void all_to_all(Stream&, View out, ConstView) override { add(out.bytes()); }
  void broadcast(Stream&, View view, int) override { add(view.bytes()); }
  void gather_parts(Stream&, View whole, const Places& places) override { add_parts(whole, places); }
  void reduce_parts(Stream&, View whole, Reduce, const Places& places) override { add_parts(whole, places); }
  void set_send_slots(View, int) override {}
  void send(Stream&, ConstView view, int) override { add(view.bytes()); }
  void recv(Stream&, View view, int) override { add(view.bytes()); }
  std::vector<std::string> exchange(std::string_view mine) override;
  std::unique_ptr<Communicator> split(const GroupName& name, int, int) override;
  void abort(const std::string&) override {}

 private:
  void add(size_t bytes) {
    ++calls_;
    bytes_ += bytes;
  }
  void add_parts(const View& whole, const Places& places);

  int rank_, size_;
  std::string name_;
  size_t bytes_ = 0;
  int64_t calls_ = 0;
};

}  // namespace megalith
