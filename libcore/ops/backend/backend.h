#pragma once

#include <memory>

#include "libcore/base/process.h"
#include "libcore/ops/activation.h"
#include "libcore/ops/attention.h"
#include "libcore/ops/dropout.h"
#include "libcore/ops/embedding.h"
#include "libcore/ops/linear.h"
#include "libcore/ops/loss.h"
#include "libcore/ops/norm.h"
#include "libcore/ops/optimizer.h"
#include "libcore/ops/prefix.h"
#include "libcore/ops/project.h"
#include "libcore/ops/slots.h"
#include "libcore/ops/step.h"

namespace megalith {

/// One device kind's implementation of every op. Ops are already checked (by run() below), so implementations
/// trust their fields.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;  // "cpu", "cuda", "dry"

  /// Zeroed memory; kDevice if there is not enough. Large blocks on a CPU cost time only when they are first
  /// touched: a run that set its 2 GiB to zero at its start began 0.8 s later.
  virtual Memory allocate(size_t bytes) = 0;
  virtual Stream make_stream() = 0;
  /// A stream in addition to the compute streams, for copies and communication: it moves memory, adds and
  /// does host work, in order; on the CPU with its own thread, which ends with the backend. It refuses ops,
  /// since that thread opens no OpenMP region.
  virtual Stream make_queue_stream() = 0;

  virtual void copy(Stream&, View to, ConstView from) = 0;
  virtual void to_host(Stream&, void* to, ConstView from) = 0;
  virtual void from_host(Stream&, View to, const void* from) = 0;
  virtual void fill(Stream&, View to, double value) = 0;
  virtual void add(Stream&, View to, ConstView from) = 0;
  virtual void enqueue(Stream&, std::function<void()> work, std::function<void()> give_up) = 0;
  virtual Event record(Stream&) = 0;
  virtual void wait(Stream&, const Event&) = 0;
  virtual void synchronize(Stream&) = 0;
  virtual void finish(Stream&, bool drop) noexcept = 0;
  /// Whether this stream refuses ops (a queue stream, unless those are ordinary streams), so that an op
  /// enqueued by mistake fails.
  virtual bool refuses_ops(const Stream&) const { return false; }

  virtual void run(Stream&, const Gemm&) = 0;
  virtual void run(Stream&, const Project&) = 0;
  virtual void run(Stream&, const QuantizeRows&) = 0;
  virtual void run(Stream&, const WidenRows&) = 0;
  virtual void run(Stream&, const BiasGrad&) = 0;
  virtual void run(Stream&, const AddSlots&) = 0;
  virtual void run(Stream&, const TakeSlots&) = 0;
  virtual void run(Stream&, const ScaleBy&) = 0;
  virtual void run(Stream&, const PutPrefix&) = 0;
  virtual void run(Stream&, const PrefixGrad&) = 0;
  virtual void run(Stream&, const LayerNorm&) = 0;
  virtual void run(Stream&, const LayerNormGrad&) = 0;
  virtual void run(Stream&, const RmsNorm&) = 0;
  virtual void run(Stream&, const RmsNormGrad&) = 0;
  virtual void run(Stream&, const Rope&) = 0;
  virtual void run(Stream&, const Attention&) = 0;
  virtual void run(Stream&, const AttentionGrad&) = 0;
  virtual void run(Stream&, const CopyKeyValues&) = 0;
  virtual void run(Stream&, const CachedAttention&) = 0;
  virtual void run(Stream&, const Gelu&) = 0;
  virtual void run(Stream&, const GeluGrad&) = 0;
  virtual void run(Stream&, const SwiGlu&) = 0;
  virtual void run(Stream&, const SwiGluGrad&) = 0;
  virtual void run(Stream&, const Dropout&) = 0;
  virtual void run(Stream&, const Embedding&) = 0;
  virtual void run(Stream&, const EmbeddingGrad&) = 0;
  virtual void run(Stream&, const SoftmaxStats&) = 0;
  virtual void run(Stream&, const SoftmaxRescale&) = 0;
  virtual void run(Stream&, const CrossEntropy&) = 0;
  virtual void run(Stream&, const SumSquares&) = 0;
  virtual void run(Stream&, const ScaledSum&) = 0;
  virtual void run(Stream&, const DecideStep&) = 0;
  virtual void run(Stream&, const AdamW&) = 0;
};

/// The CPU backend: oneDNN for Gemm, own kernels chosen once for this processor
/// (MEGALITH_ISA=generic|avx2|avx512|avx512bf16 forces a lower one), OpenMP inside. Results do not depend on
/// timing; they depend on the number of threads only if an op says so.
std::unique_ptr<Backend> make_cpu_backend();
/// The number of threads of CPU ops that the calling thread runs from now on, with backends that are made
/// later. 0: as many as the machine has.
void set_cpu_threads(int threads);
/// Does no work; with a Trace on the stream, it adds up the costs of ops. Takes views of a counting Arena.
std::unique_ptr<Backend> make_dry_backend();

/// The entry point of every op: checks it, runs it, and accounts for it if the stream has a Trace.
template <class Op>
void run(Stream& stream, const Op& op) {
  op.check();
  if (stream.backend().refuses_ops(stream))
    fail(ErrorKind::kInternal, Op::kName, ": a queue stream moves memory and does no ops");
  if (Trace* trace = stream.trace()) {
    const auto start = std::chrono::steady_clock::now();
    stream.backend().run(stream, op);
    trace->add(Op::kName, op.cost(), seconds_since(start));
    return;
  }
  stream.backend().run(stream, op);
}

}  // namespace megalith
