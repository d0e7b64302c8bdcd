#pragma once

#include <functional>
#include <memory>

#include "libcore/ops/activation.h"
#include "libcore/ops/attention.h"
#include "libcore/ops/backend/product_parts.h"
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

/// One device kind's implementation of every op. The free function run() checks an op before it calls the
/// backend, so implementations trust the op's fields.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;  // "cpu", "cuda", "dry"

  /// Zeroed memory. If there is not enough: kSystem on a CPU, kDevice on a GPU. On a CPU, the pages of large
  /// blocks are zeroed when they are first touched: zeroing 2 GiB at once delayed a run's start by 0.8 s.
  virtual Memory allocate(size_t bytes) = 0;
  virtual Stream make_stream() = 0;
  /// A stream for copies and communication, beside the compute streams: it copies, adds and runs host work,
  /// in order. On the CPU, a thread of its own, which ends with the backend, does this. That thread opens no
  /// OpenMP region, so the stream refuses ops.
  virtual Stream make_queue_stream() = 0;
  /// Allocates the scratch memory that ops and sums of the stream will need, so that no work allocates: until
  /// a device that other ranks wait for is idle, a stream keeps the smaller blocks that it had before. Does
  /// nothing where ops need none, or for 0 bytes. Throws kDevice if there is not enough memory.
  virtual void reserve_scratch(Stream&, size_t /*bytes*/) {}

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
  /// Calls `work`, which enqueues work of the stream, and returns the time that this work takes. Does not
  /// wait for a device. Backends that do the work in the call return time_of_call(work). No function of this
  /// class may have its body in a .cpp file: a plugin links no such file of the core.
  virtual WorkTime timed(Stream&, const std::function<void()>& work) = 0;
  /// Stream::note_time().
  virtual AskTime note_time(Stream&) { return {}; }
  /// Whether run() throws on this stream, because an op there is a programming error: true for the queue
  /// streams of a CPU.
  virtual bool refuses_ops(const Stream&) const { return false; }
  /// Whether run() takes products with epilogues. Other backends get the ops that do the same
  /// (for_each_part).
  virtual bool fuses_epilogues() const { return false; }

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
  virtual void run(Stream&, const HeadSums&) = 0;
  virtual void run(Stream&, const HeadsNorm&) = 0;
  virtual void run(Stream&, const HeadsNormGrad&) = 0;
  virtual void run(Stream&, const Rope&) = 0;
  virtual void run(Stream&, const Attention&) = 0;
  virtual void run(Stream&, const AttentionGrad&) = 0;
  virtual void run(Stream&, const CopyKeyValues&) = 0;
  virtual void run(Stream&, const CachedAttention&) = 0;
  virtual void run(Stream&, const Activate&) = 0;
  virtual void run(Stream&, const ActivateGrad&) = 0;
  virtual void run(Stream&, const SwiGlu&) = 0;
  virtual void run(Stream&, const SwiGluGrad&) = 0;
  virtual void run(Stream&, const Dropout&) = 0;
  virtual void run(Stream&, const Embedding&) = 0;
  virtual void run(Stream&, const EmbeddingGrad&) = 0;
  virtual void run(Stream&, const SoftmaxStats&) = 0;
  virtual void run(Stream&, const SoftmaxRescale&) = 0;
  virtual void run(Stream&, const CrossEntropy&) = 0;
  virtual void run(Stream&, const SoftmaxLoss&) = 0;
  virtual void run(Stream&, const SumSquares&) = 0;
  virtual void run(Stream&, const ScaledSum&) = 0;
  virtual void run(Stream&, const DecideStep&) = 0;
  virtual void run(Stream&, const AdamW&) = 0;
};

/// Calls `work` and returns the time of the call.
WorkTime time_of_call(const std::function<void()>& work);

/// Creates the CPU backend. It uses oneDNN for Gemm, our own kernels for the other ops, and OpenMP for
/// threads. The kernels' instruction set is chosen once for this processor;
/// MEGALITH_ISA=generic|avx2|avx512|avx512bf16 forces a lower one. Results do not depend on timing; they
/// depend on the number of threads only where an op's comment says so.
std::unique_ptr<Backend> make_cpu_backend();
/// Sets the number of threads for the CPU ops that the calling thread runs from now on, on backends created
/// after this call. 0: as many as the process can keep busy (usable_cpus()). Creates the threads. Throws
/// std::system_error if the system refuses one.
void set_cpu_threads(int threads);
/// A backend that does no work; a Trace on the stream adds up the costs of ops. Accepts views of a counting
/// Arena.
std::unique_ptr<Backend> make_dry_backend();

/// The name under which a trace records an op.
template <class Op>
std::string name_in(const Trace&, const Op&) {
  return Op::kName;
}
inline std::string name_in(const Trace& trace, const Gemm& op) {
  return trace.by_shape() ? op.description() : Gemm::kName;
}

/// The entry point of every op: checks it, runs it, and adds its cost and time to the stream's Trace, if
/// there is one.
template <class Op>
void run(Stream& stream, const Op& op) {
  op.check();
  if (stream.backend().refuses_ops(stream))
    fail(ErrorKind::kInternal, Op::kName, ": a queue stream moves memory and does no ops");
  Backend& backend = stream.backend();
  if (Trace* const trace = stream.trace())
    return trace->add(name_in(*trace, op), op.cost(),
                      backend.timed(stream, [&] { backend.run(stream, op); }));
  backend.run(stream, op);
}
inline void run(Stream& stream, const Gemm& op) {
  if (op.epilogue() == Epilogue::kNone || stream.backend().fuses_epilogues()) return run<Gemm>(stream, op);
  op.check();
  for_each_part(op, [&](const auto& part) { run(stream, part); });
}

}  // namespace megalith
