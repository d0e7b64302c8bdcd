#include "libcore/ops/backend.h"

namespace megalith {
namespace {

/// Does no work: the front door has already checked the op and added up its cost.
class DryBackend final : public Backend {
 public:
  const char* name() const override { return "dry"; }
  Memory allocate(size_t bytes) override { return {nullptr, bytes}; }
  Stream make_stream() override { return Stream(*this); }
  Stream make_queue_stream() override { return Stream(*this); }

  void copy(Stream&, View, ConstView) override {}
  void to_host(Stream&, void*, ConstView) override {}
  void from_host(Stream&, View, const void*) override {}
  void fill(Stream&, View, double) override {}
  void add(Stream&, View, ConstView) override {}
  void enqueue(Stream&, std::function<void()>, std::function<void()>) override {}
  Event record(Stream&) override { return {}; }
  void wait(Stream&, const Event&) override {}
  void synchronize(Stream&) override {}
  void finish(Stream&, bool) noexcept override {}

  void run(Stream&, const Gemm&) override {}
  void run(Stream&, const Project&) override {}
  void run(Stream&, const QuantizeRows&) override {}
  void run(Stream&, const BiasGrad&) override {}
  void run(Stream&, const LayerNorm&) override {}
  void run(Stream&, const LayerNormGrad&) override {}
  void run(Stream&, const RmsNorm&) override {}
  void run(Stream&, const RmsNormGrad&) override {}
  void run(Stream&, const Rope&) override {}
  void run(Stream&, const Attention&) override {}
  void run(Stream&, const AttentionGrad&) override {}
  void run(Stream&, const CopyKeyValues&) override {}
  void run(Stream&, const CachedAttention&) override {}
  void run(Stream&, const Gelu&) override {}
  void run(Stream&, const GeluGrad&) override {}
  void run(Stream&, const SwiGlu&) override {}
  void run(Stream&, const SwiGluGrad&) override {}
  void run(Stream&, const Dropout&) override {}
  void run(Stream&, const Embedding&) override {}
  void run(Stream&, const EmbeddingGrad&) override {}
  void run(Stream&, const SoftmaxStats&) override {}
  void run(Stream&, const SoftmaxRescale&) override {}
  void run(Stream&, const CrossEntropy&) override {}
  void run(Stream&, const SumSquares&) override {}
  void run(Stream&, const ScaledSum&) override {}
  void run(Stream&, const DecideStep&) override {}
  void run(Stream&, const AdamW&) override {}
};

}  // namespace

std::unique_ptr<Backend> make_dry_backend() {
  return std::make_unique<DryBackend>();
}

}  // namespace megalith
