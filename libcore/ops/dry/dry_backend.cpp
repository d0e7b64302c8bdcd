#include "libcore/ops/dry/dry_backend.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "libcore/ops/backend/cuda_workspaces.h"

namespace megalith {
namespace {

/// Does no work: run() has already checked the op and added up its cost. With `seconds`, streams have clocks.
class DryBackend final : public Backend {
 public:
  explicit DryBackend(bool fuses) : fuses_(fuses) {}
  explicit DryBackend(OpSeconds seconds) : seconds_(std::move(seconds)) {}
  const char* name() const override { return "dry"; }
  Memory allocate(size_t bytes) override { return {nullptr, bytes}; }
  Stream make_stream() override { return Stream(*this, seconds_ ? &clocks_.emplace_back(0.0) : nullptr); }
  Stream make_queue_stream() override { return make_stream(); }

  void copy(Stream& s, View to, ConstView from) override { moved(s, "copy", {0, bytes(to) + bytes(from)}); }
  void to_host(Stream&, void*, ConstView) override {}
  void from_host(Stream&, View, const void*) override {}
  void fill(Stream& s, View to, double) override { moved(s, "fill", {0, bytes(to)}); }
  void add(Stream& s, View to, ConstView from) override {
    moved(s, "add", {static_cast<double>(to.elements()), 2 * bytes(to) + bytes(from)});
  }
  void enqueue(Stream&, std::function<void()>, std::function<void()>) override {}
  Event record(Stream& s) override {
    return {seconds_ ? std::make_shared<double>(stream_clock(s)) : std::shared_ptr<double>()};
  }
  void wait(Stream& s, const Event& event) override {
    if (event.native) stream_clock(s) = std::max(stream_clock(s), *static_cast<double*>(event.native.get()));
  }
  void synchronize(Stream&) override {}
  void finish(Stream&, bool) noexcept override {}
  WorkTime timed(Stream&, const std::function<void()>& work) override { return time_of_call(work); }
  bool fuses_epilogues() const override { return fuses_; }

  void run(Stream& s, const Gemm& op) override {
    const ProductKind kind = product_kind(op);
    if (kind.m > 0 && kind.n > 0 && kind.k > 0) products_.insert(kind);
    spend(s, op);
  }
  void run(Stream& s, const Project& op) override { spend(s, op); }
  void run(Stream& s, const QuantizeRows& op) override { spend(s, op); }
  void run(Stream& s, const WidenRows& op) override { spend(s, op); }
  void run(Stream& s, const BiasGrad& op) override { spend(s, op); }
  void run(Stream& s, const AddSlots& op) override { spend(s, op); }
  void run(Stream& s, const TakeSlots& op) override { spend(s, op); }
  void run(Stream& s, const ScaleBy& op) override { spend(s, op); }
  void run(Stream& s, const PutPrefix& op) override { spend(s, op); }
  void run(Stream& s, const PrefixGrad& op) override { spend(s, op); }
  void run(Stream& s, const LayerNorm& op) override { spend(s, op); }
  void run(Stream& s, const LayerNormGrad& op) override { spend(s, op); }
  void run(Stream& s, const RmsNorm& op) override { spend(s, op); }
  void run(Stream& s, const RmsNormGrad& op) override { spend(s, op); }
  void run(Stream& s, const HeadSums& op) override { spend(s, op); }
  void run(Stream& s, const HeadsNorm& op) override { spend(s, op); }
  void run(Stream& s, const HeadsNormGrad& op) override { spend(s, op); }
  void run(Stream& s, const Rope& op) override { spend(s, op); }
  void run(Stream& s, const Attention& op) override { spend(s, op); }
  void run(Stream& s, const AttentionGrad& op) override {
    if (const auto kind = attention_kind(op)) attention_.insert(*kind);
    spend(s, op);
  }
  void run(Stream& s, const CopyKeyValues& op) override { spend(s, op); }
  void run(Stream& s, const CachedAttention& op) override { spend(s, op); }
  void run(Stream& s, const Activate& op) override { spend(s, op); }
  void run(Stream& s, const ActivateGrad& op) override { spend(s, op); }
  void run(Stream& s, const SwiGlu& op) override { spend(s, op); }
  void run(Stream& s, const SwiGluGrad& op) override { spend(s, op); }
  void run(Stream& s, const Dropout& op) override { spend(s, op); }
  void run(Stream& s, const Embedding& op) override { spend(s, op); }
  void run(Stream& s, const EmbeddingGrad& op) override { spend(s, op); }
  void run(Stream& s, const SoftmaxStats& op) override { spend(s, op); }
  void run(Stream& s, const SoftmaxRescale& op) override { spend(s, op); }
  void run(Stream& s, const CrossEntropy& op) override { spend(s, op); }
  void run(Stream& s, const SoftmaxLoss& op) override { spend(s, op); }
  void run(Stream& s, const SumSquares& op) override { spend(s, op); }
  void run(Stream& s, const ScaledSum& op) override { spend(s, op); }
  void run(Stream& s, const DecideStep& op) override { spend(s, op); }
  void run(Stream& s, const AdamW& op) override { spend(s, op); }

  size_t workspace() const { return workspace_; }
  const std::set<ProductKind>& products() const { return products_; }
  const std::set<AttentionKind>& attention() const { return attention_; }

 private:
  static double bytes(const ConstView& view) { return static_cast<double>(view.bytes()); }
  template <class Op>
  void spend(Stream& stream, const Op& op) {
    workspace_ = std::max(workspace_, cuda::workspace_of(op));
    if (seconds_) stream_clock(stream) += seconds_(Op::kName, op.cost());
  }
  void moved(Stream& stream, const char* what, const Cost& cost) {
    if (seconds_) stream_clock(stream) += seconds_(what, cost);
  }

  bool fuses_ = false;
  OpSeconds seconds_ = {};
  size_t workspace_ = 0;
  std::set<ProductKind> products_;
  std::set<AttentionKind> attention_;
  std::deque<double> clocks_;  // a deque, so that their addresses are stable
};

const DryBackend& dry(const Backend& backend, const char* what) {
  if (std::string_view(backend.name()) != "dry")
    fail(ErrorKind::kInternal, "the ", backend.name(), " backend does not count ", what);
  return static_cast<const DryBackend&>(backend);
}

}  // namespace

std::unique_ptr<Backend> make_dry_backend() {
  return std::make_unique<DryBackend>(false);
}

std::unique_ptr<Backend> make_dry_cuda_backend() {
  return std::make_unique<DryBackend>(true);
}

std::unique_ptr<Backend> make_timed_backend(OpSeconds seconds) {
  return std::make_unique<DryBackend>(std::move(seconds));
}

size_t cuda_workspace(const Backend& backend) {
  return dry(backend, "scratch memory").workspace();
}

const std::set<ProductKind>& products_run(const Backend& backend) {
  return dry(backend, "products").products();
}

const std::set<AttentionKind>& attention_run(const Backend& backend) {
  return dry(backend, "attention").attention();
}

double& stream_clock(const Stream& stream) {
  if (stream.native() == nullptr || std::string_view(stream.backend().name()) != "dry")
    fail(ErrorKind::kInternal, "a stream of the ", stream.backend().name(), " backend has no clock");
  return *static_cast<double*>(stream.native());
}

}  // namespace megalith
