#include "tests/support/thread_group.h"

#include <algorithm>
#include <barrier>
#include <exception>
#include <thread>

#include "libcore/base/error.h"

namespace megalith::test {
namespace {

/// What the ranks share: where each one's tensor of the present call lies.
struct Meeting {
  explicit Meeting(int size) : barrier(size), tensors(static_cast<size_t>(size)) {}
  std::barrier<> barrier;
  std::vector<ConstView> tensors;
};

class Member final : public Communicator {
 public:
  Member(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(meeting_.tensors.size()); }

  void all_reduce(Stream&, View view, Reduce reduce) override {
    const std::vector<float> sum = reduced(view, reduce);
    std::copy(sum.begin(), sum.end(), view.as<float>());
  }
  void reduce_scatter(Stream&, View mine, ConstView in, Reduce reduce) override {
    const std::vector<float> sum = reduced(in, reduce);
    std::copy_n(sum.begin() + rank_ * mine.elements(), mine.elements(), mine.as<float>());
  }
  void all_gather(Stream&, View out, ConstView mine) override {
    post(mine);
    float* to = out.as<float>();
    for (const ConstView& part : meeting_.tensors) to = std::copy_n(part.as<float>(), part.elements(), to);
    meeting_.barrier.arrive_and_wait();
  }
  void all_to_all(Stream&, View, ConstView) override { refuse(); }
  void send(Stream&, ConstView, int) override { refuse(); }
  void recv(Stream&, View, int) override { refuse(); }
  void broadcast(Stream&, View, int) override { refuse(); }
  std::unique_ptr<Communicator> split(int, int) override { refuse(); }
  void abort(const std::string&) override { refuse(); }

 private:
  [[noreturn]] static void refuse() { fail(ErrorKind::kInternal, "the test group has collectives only"); }
  void post(ConstView view) {
    if (view.dtype != DType::kF32) fail(ErrorKind::kInternal, "the test group takes fp32 only");
    meeting_.tensors[static_cast<size_t>(rank_)] = view;
    meeting_.barrier.arrive_and_wait();
  }
  /// In rank order; returns when every rank has read.
  std::vector<float> reduced(ConstView view, Reduce reduce) {
    post(view);
    const ConstView& first = meeting_.tensors.front();
    std::vector<float> out(first.as<float>(), first.as<float>() + first.elements());
    for (size_t rank = 1; rank < meeting_.tensors.size(); ++rank)
      for (size_t i = 0; i < out.size(); ++i) {
        const float x = meeting_.tensors[rank].as<float>()[i];
        out[i] = reduce == Reduce::kSum ? out[i] + x : std::max(out[i], x);
      }
    meeting_.barrier.arrive_and_wait();
    return out;
  }

  Meeting& meeting_;
  int rank_;
};

}  // namespace

void run_ranks(int size, const std::function<void(Communicator&)>& body) {
  Meeting meeting(size);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Member member(meeting, rank);
        body(member);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace megalith::test
