#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "libcore/base/machine/isa.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/ops/cpu/arguments.h"
#include "libcore/ops/cpu/attention.h"
#include "libcore/ops/cpu/elements.h"
#include "libcore/ops/cpu/gemm.h"
#include "libcore/ops/cpu/heads_norm.h"
#include "libcore/ops/cpu/host_blocks.h"
#include "libcore/ops/cpu/kernels/kernels.h"
#include "libcore/ops/cpu/queue.h"
#include "libcore/ops/cpu/storage.h"
#include "libcore/ops/cpu/thread_team.h"
#include "libcore/ops/cpu/threads.h"
#include "libcore/ops/step_maths.h"

namespace megalith {
namespace cpu {
namespace {

const Kernels& kernels(Isa isa) {
  return *select<const Kernels*>(isa, {.generic = &kKernelsGeneric,
                                       .avx2 = MEGALITH_IF_SIMD(&kKernelsAvx2),
                                       .avx512 = MEGALITH_IF_SIMD(&kKernelsAvx512),
                                       .avx512bf16 = MEGALITH_IF_SIMD(&kKernelsAvx512Bf16)});
}

/// Parallel sums over rows. At most 64 blocks of rows, which depend only on the number of rows, are summed
/// separately and added up in order, so the result does not depend on the number of threads.
template <class Block>
void sum_over_rows(int64_t rows, std::initializer_list<View> sums, const Block& block) {
  constexpr int64_t kBlocks = 64, kMinRows = 16;
  const int64_t size = std::max(kMinRows, (rows + kBlocks - 1) / kBlocks), blocks = (rows + size - 1) / size;
  int64_t columns = 0;
  for (const View& sum : sums) columns += sum ? sum.elements() : 0;
  float* const partial = thread_scratch(static_cast<size_t>(blocks * columns));
  for_each_range(rows, size,
                 [&](int64_t begin, int64_t end) { block(partial + begin / size * columns, begin, end); });
  int64_t offset = 0;
  for (const View& sum : sums) {
    if (!sum) continue;
    float* const total = sum.as<float>();
    for (int64_t i = 0; i < blocks; ++i)
      for (int64_t j = 0; j < sum.elements(); ++j) total[j] += partial[i * columns + offset + j];
    offset += sum.elements();
  }
}

/// Copies bytes with memcpy, above 1 MiB on several threads: for fewer bytes, waking them is not worth it.
/// Zero bytes are not passed to memcpy, which does not accept null.
void copy_bytes(void* to, const void* from, size_t bytes) {
  constexpr int64_t kCopied = int64_t{1} << 20;
  if (bytes == 0) return;
  for_each_range(static_cast<int64_t>(bytes), kCopied, [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

class CpuBackend final : public Backend {
 public:
  CpuBackend()
      : kernels_(kernels(chosen_isa())),
        gemm_(kernels_, team_),
        attention_(kernels_, team_),
        heads_(kernels_) {}
  const char* name() const override { return "cpu"; }
  Memory allocate(size_t bytes) override { return allocate_block(bytes); }
  Stream make_stream() override { return Stream(*this); }
  Stream make_queue_stream() override;

  void copy(Stream& stream, View to, ConstView from) override {
    in_order(stream, [=, this] { copy_elements(kernels_, to, from); });
  }
  void to_host(Stream&, void* to, ConstView from) override;
  void from_host(Stream&, View to, const void* from) override;
  void fill(Stream& stream, View to, double value) override {
    in_order(stream, [=, this] { fill_elements(kernels_, to, value); });
  }
  void add(Stream& stream, View to, ConstView from) override {
    in_order(stream, [=, this] { add_elements(kernels_, to, from); });
  }
  void enqueue(Stream&, std::function<void()> work, std::function<void()> give_up) override;
  Event record(Stream&) override;
  void wait(Stream&, const Event&) override;
  void synchronize(Stream&) override;
  void finish(Stream&, bool drop) noexcept override;
  WorkTime timed(Stream&, const std::function<void()>& work) override { return time_of_call(work); }
  bool refuses_ops(const Stream& stream) const override { return queue_of(stream) != nullptr; }

  void run(Stream&, const Gemm& op) override { gemm_.run(op); }
  void run(Stream&, const Project& op) override { gemm_.run(op); }
  void run(Stream&, const QuantizeRows&) override;
  void run(Stream&, const WidenRows&) override;
  void run(Stream&, const BiasGrad&) override;
  void run(Stream&, const AddSlots&) override;
  void run(Stream&, const TakeSlots&) override;
  void run(Stream&, const ScaleBy&) override;
  void run(Stream&, const PutPrefix& op) override { attention_.run(op); }
  void run(Stream&, const PrefixGrad& op) override { attention_.run(op); }
  void run(Stream&, const LayerNorm&) override;
  void run(Stream&, const LayerNormGrad&) override;
  void run(Stream&, const RmsNorm&) override;
  void run(Stream&, const RmsNormGrad&) override;
  void run(Stream&, const HeadSums& op) override { heads_.run(op); }
  void run(Stream&, const HeadsNorm& op) override { heads_.run(op); }
  void run(Stream&, const HeadsNormGrad& op) override { heads_.run(op); }
  void run(Stream&, const Rope& op) override { attention_.run(op); }
  void run(Stream&, const Attention& op) override { attention_.run(op); }
  void run(Stream&, const AttentionGrad& op) override { attention_.run(op); }
  void run(Stream&, const CopyKeyValues& op) override { attention_.run(op); }
  void run(Stream&, const CachedAttention& op) override { attention_.run(op); }
  void run(Stream&, const Activate&) override;
  void run(Stream&, const ActivateGrad&) override;
  void run(Stream&, const SwiGlu&) override;
  void run(Stream&, const SwiGluGrad&) override;
  void run(Stream&, const Dropout&) override;
  void run(Stream&, const Embedding&) override;
  void run(Stream&, const EmbeddingGrad&) override;
  void run(Stream&, const SoftmaxStats&) override;
  void run(Stream&, const SoftmaxRescale&) override;
  void run(Stream&, const CrossEntropy&) override;
  void run(Stream& stream, const SoftmaxLoss& op) override {
    run(stream, op.stats());
    run(stream, op.cross_entropy());
  }
  void run(Stream&, const SumSquares&) override;
  void run(Stream&, const ScaledSum&) override;
  void run(Stream&, const DecideStep&) override;
  void run(Stream&, const AdamW&) override;

 private:
  /// The dropout of a norm's input, then the norm.
  template <class Norm>
  void run_apart(Stream& stream, Norm op) {
    run(stream, Dropout{.y = op.sum, .x = op.x, .key = op.dropout, .residual = op.residual});
    op.x = op.sum;
    op.residual = op.sum = {};
    op.dropout = {};
    run(stream, op);
  }
  /// The queue of a queue stream; null for a compute stream.
  static Queue* queue_of(const Stream& stream) { return static_cast<Queue*>(stream.native()); }
  template <class Work>
  static void in_order(const Stream& stream, const Work& work) {
    if (Queue* const queue = queue_of(stream)) return queue->put(work);
    work();
  }

  const Kernels& kernels_;
  ThreadTeam team_;  // runs the short ops of generation
  GemmRunner gemm_;
  AttentionRunner attention_;
  HeadsNormRunner heads_;
  std::mutex mutex_;  // guards queues_
  std::vector<std::unique_ptr<Queue>> queues_;
};

// ---- streams

Stream CpuBackend::make_queue_stream() {
  const std::lock_guard lock(mutex_);
  return Stream(*this, queues_.emplace_back(std::make_unique<Queue>()).get());
}

void CpuBackend::to_host(Stream& stream, void* to, ConstView from) {
  in_order(stream, [=] { copy_bytes(to, from.data, from.bytes()); });
  synchronize(stream);
}

void CpuBackend::from_host(Stream& stream, View to, const void* from) {
  in_order(stream, [=] { copy_bytes(to.data, from, to.bytes()); });
  synchronize(stream);
}

void CpuBackend::enqueue(Stream& stream, std::function<void()> work, std::function<void()> give_up) {
  if (Queue* const queue = queue_of(stream)) return queue->put(std::move(work), std::move(give_up));
  work();
}

Event CpuBackend::record(Stream& stream) {
  Queue* const queue = queue_of(stream);
  if (queue == nullptr) return {};
  return {std::make_shared<Queue::Ticket>(queue->ticket())};
}

void CpuBackend::wait(Stream& stream, const Event& event) {
  // An event of a compute stream, whose work was done when the event was recorded.
  if (event.native == nullptr) return;
  const Queue::Ticket ticket = *static_cast<const Queue::Ticket*>(event.native.get());
  if (queue_of(stream) == ticket.queue) return;  // an event of this queue, whose work is in order anyway
  in_order(stream, [ticket] { ticket.queue->wait(ticket); });
}

void CpuBackend::synchronize(Stream& stream) {
  if (Queue* const queue = queue_of(stream)) queue->wait(queue->ticket());
}

void CpuBackend::finish(Stream& stream, bool drop) noexcept {
  if (Queue* const queue = queue_of(stream)) queue->finish(drop);
}

// ---- linear, norm, activation

void CpuBackend::run(Stream&, const QuantizeRows& op) {
  const QuantizeArgs args{
      .q = op.q.as<int8_t>(), .scales = op.scales.as<float>(), .w = op.w.data, .columns = op.w.shape[1]};
  const auto quantize = kernels_.quantize_rows[storage_of(op.w.dtype)];
  for_each_range(op.w.shape[0], range_rows(args.columns),
                 [&](int64_t begin, int64_t end) { quantize(args, begin, end); });
}

void CpuBackend::run(Stream&, const WidenRows& op) {
  // The kernel only reads what loses its const here.
  const QuantizeArgs args{.q = const_cast<int8_t*>(op.q.as<int8_t>()),
                          .scales = const_cast<float*>(op.scales.as<float>()),
                          .w = nullptr,
                          .columns = op.w.shape[1]};
  float* const to = op.w.as<float>();
  for_each_range(op.w.shape[0], range_rows(args.columns), [&](int64_t begin, int64_t end) {
    kernels_.widen_rows(to + begin * args.columns, args, begin, end);
  });
}

void CpuBackend::run(Stream&, const BiasGrad& op) {
  const int64_t columns = op.dy.shape.back();
  const auto sums = kernels_.column_sums[storage_of(op.dy.dtype)];
  sum_over_rows(op.dy.shape.rows(), {op.dbias}, [&](float* partial, int64_t begin, int64_t end) {
    sums(partial, op.dy.data, columns, begin, end);
  });
}

void CpuBackend::run(Stream& stream, const LayerNorm& op) {
  if (op.dropout.p > 0) return run_apart(stream, op);
  const auto args = norm_args<NormArgs>(op);
  const auto norm = kernels_.layer_norm[storage_of(op.x.dtype)];
  for_each_range(rows_taken(op.part, op.x.shape.rows()), range_rows(args.columns),
                 [&](int64_t begin, int64_t end) { norm(args, begin, end); });
}

void CpuBackend::run(Stream& stream, const RmsNorm& op) {
  if (op.dropout.p > 0) return run_apart(stream, op);
  const auto args = norm_args<NormArgs>(op);
  const auto norm = kernels_.rms_norm[storage_of(op.x.dtype)];
  for_each_range(rows_taken(op.part, op.x.shape.rows()), range_rows(args.columns),
                 [&](int64_t begin, int64_t end) { norm(args, begin, end); });
}

void CpuBackend::run(Stream&, const LayerNormGrad& op) {
  const auto args = norm_grad_args<NormGradArgs>(op);
  const auto grad = kernels_.layer_norm_grad[storage_of(op.dy.dtype)];
  sum_over_rows(rows_taken(op.part, op.dy.shape.rows()), {op.dw, op.db},
                [&](float* partial, int64_t begin, int64_t end) {
                  float* const dw = op.dw ? partial : nullptr;
                  grad(args, dw, op.db ? partial + (op.dw ? args.columns : 0) : nullptr, begin, end);
                });
}

void CpuBackend::run(Stream&, const RmsNormGrad& op) {
  const auto args = norm_grad_args<NormGradArgs>(op);
  const auto grad = kernels_.rms_norm_grad[storage_of(op.dy.dtype)];
  sum_over_rows(
      rows_taken(op.part, op.dy.shape.rows()), {op.dw},
      [&](float* partial, int64_t begin, int64_t end) { grad(args, op.dw ? partial : nullptr, begin, end); });
}

// ---- slots

/// Calls move(offset in the whole rows, offset in the selected columns, length) for each contiguous stretch
/// of selected columns in rows [begin, end); all three count elements.
template <class Move>
void for_each_stretch(const Slots& slots, int64_t begin, int64_t end, const Move& move) {
  const int64_t step = slots.slots * slots.inner, stretch = slots.count * slots.inner;
  for (int64_t row = begin; row < end; ++row)
    for (int64_t outer = 0; outer < slots.outer; ++outer)
      move(row * slots.columns() + outer * step + slots.first * slots.inner,
           row * slots.taken() + outer * stretch, stretch);
}

void CpuBackend::run(Stream&, const AddSlots& op) {
  const auto add = kernels_.add[storage_of(op.y.dtype)][storage_of(op.x.dtype)];
  for_each_range(op.x.shape.rows(), range_rows(op.slots.taken()), [&](int64_t begin, int64_t end) {
    for_each_stretch(op.slots, begin, end, [&](int64_t whole, int64_t part, int64_t n) {
      add(at(op.y, whole), at(op.x, part), n);
    });
  });
}

void CpuBackend::run(Stream&, const TakeSlots& op) {
  const size_t element = size_of(op.x.dtype);
  for_each_range(op.y.shape.rows(), range_rows(op.slots.taken()), [&](int64_t begin, int64_t end) {
    for_each_stretch(op.slots, begin, end, [&](int64_t whole, int64_t part, int64_t n) {
      std::memcpy(at(op.y, part), at(op.x, whole), static_cast<size_t>(n) * element);
    });
  });
}

void CpuBackend::run(Stream&, const ScaleBy& op) {
  constexpr int64_t kAtOnce = 1024;
  const auto widen = kernels_.copy[kF32][storage_of(op.x.dtype)];
  const auto narrow = kernels_.copy[storage_of(op.x.dtype)][kF32];
  for_each_range(op.x.elements(), kRange, [&](int64_t first, int64_t last) {
    float wide[kAtOnce];
    for (int64_t begin = first; begin < last; begin += kAtOnce) {
      const int64_t n = std::min(kAtOnce, last - begin);
      widen(wide, at(op.x, begin), n);
      for (int64_t i = 0; i < n; ++i) wide[i] *= op.factor;
      narrow(at(op.x, begin), wide, n);
    }
  });
}

void CpuBackend::run(Stream&, const Activate& op) {
  const auto activate = kernels_.activate[storage_of(op.x.dtype)];
  for_each_range(op.x.elements(), kRange, [&](int64_t begin, int64_t end) {
    activate(op.y.data, op.x.data, op.function, begin, end);
  });
}

void CpuBackend::run(Stream&, const ActivateGrad& op) {
  const auto grad = kernels_.activate_grad[storage_of(op.x.dtype)];
  for_each_range(op.x.elements(), kRange, [&](int64_t begin, int64_t end) {
    grad(op.dx.data, op.dy.data, op.x.data, op.function, begin, end);
  });
}

void CpuBackend::run(Stream&, const SwiGlu& op) {
  const auto swiglu = kernels_.swiglu[storage_of(op.x.dtype)];
  const int64_t columns = op.y.shape.back();
  for_each_range(op.y.shape.rows(), range_rows(columns),
                 [&](int64_t begin, int64_t end) { swiglu(op.y.data, op.x.data, columns, begin, end); });
}

void CpuBackend::run(Stream&, const SwiGluGrad& op) {
  const auto grad = kernels_.swiglu_grad[storage_of(op.x.dtype)];
  const int64_t columns = op.dy.shape.back();
  for_each_range(op.dy.shape.rows(), range_rows(columns), [&](int64_t begin, int64_t end) {
    grad(op.dx.data, op.dy.data, op.x.data, columns, begin, end);
  });
}

void CpuBackend::run(Stream&, const Dropout& op) {
  const DropoutArgs args{.y = op.y.data,
                         .x = op.x.data,
                         .residual = op.residual.data,
                         .samples = samples_of(op.key),
                         .columns = op.x.shape[2],
                         .batch = op.x.shape[1],
                         .first_column = op.key.first_column,
                         .rows = spans_of(op.key.rows),
                         .key = mask_key(op.key)};
  const auto dropout = kernels_.dropout[storage_of(op.x.dtype)];
  for_each_range(op.x.shape.rows(), range_rows(args.columns),
                 [&](int64_t begin, int64_t end) { dropout(args, begin, end); });
}

// ---- embedding

void CpuBackend::run(Stream&, const Embedding& op) {
  const int64_t h = op.y.shape.back(), rows = op.y.shape.rows(),
                batch = rows / std::max<int64_t>(1, op.y.shape[0]);
  const int64_t vocabulary = op.table.shape.rows();
  const size_t row_bytes = static_cast<size_t>(h) * size_of(op.y.dtype);
  const auto convert = kernels_.copy[storage_of(op.y.dtype)][storage_of(op.table.dtype)];
  const auto add =
      kernels_.add[storage_of(op.y.dtype)][storage_of(op.positions ? op.positions.dtype : op.y.dtype)];
  for_each_range(rows, range_rows(h), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t id = op.ids.as<int32_t>()[row] - int64_t{op.first_id};
      if (id >= 0 && id < vocabulary)
        convert(at(op.y, row * h), at(op.table, id * h), h);
      else
        std::memset(at(op.y, row * h), 0, row_bytes);
      if (op.positions) {
        const int64_t start = op.starts ? op.starts.as<int32_t>()[row] : 0;
        add(at(op.y, row * h), at(op.positions, (op.rows.at(row / batch) - start) * h), h);
      }
    }
  });
}

/// The columns are divided among the threads, so that each table row's sum follows the order of dy's rows
/// with any number of threads.
void CpuBackend::run(Stream&, const EmbeddingGrad& op) {
  constexpr int64_t kColumns = 64;
  const int64_t h = op.dy.shape.back(), rows = op.dy.shape.rows(),
                batch = rows / std::max<int64_t>(1, op.dy.shape[0]);
  const int64_t vocabulary = op.dtable.shape.rows();
  const auto add = kernels_.add[kF32][storage_of(op.dy.dtype)];
  for_each_range(h, kColumns, [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t id = op.ids.as<int32_t>()[row] - int64_t{op.first_id};
      const auto* const dy = at(op.dy, row * h + begin);
      if (id >= 0 && id < vocabulary) add(at(op.dtable, id * h + begin), dy, end - begin);
      if (!op.dpositions) continue;
      const int64_t start = op.starts ? op.starts.as<int32_t>()[row] : 0;
      add(at(op.dpositions, (op.rows.at(row / batch) - start) * h + begin), dy, end - begin);
    }
  });
}

// ---- loss, optimizer

void CpuBackend::run(Stream&, const SoftmaxStats& op) {
  const int64_t stride = op.logits.shape.back();
  const auto stats = kernels_.softmax_stats[storage_of(op.logits.dtype)];
  for_each_range(op.logits.shape.rows(), range_rows(stride), [&](int64_t begin, int64_t end) {
    stats(op.max.as<float>(), op.sum_exp.as<float>(), op.logits.data, stride, op.columns, begin, end);
  });
}

void CpuBackend::run(Stream&, const SoftmaxRescale& op) {
  for (int64_t i = 0; i < op.sum_exp.elements(); ++i)
    op.sum_exp.as<float>()[i] *= std::exp(op.from.as<float>()[i] - op.to.as<float>()[i]);
}

void CpuBackend::run(Stream&, const CrossEntropy& op) {
  const CrossEntropyArgs args{.loss = op.loss.as<float>(),
                              .logits = op.logits.data,
                              .max = op.max.as<float>(),
                              .sum_exp = op.sum_exp.as<float>(),
                              .targets = op.targets.as<int32_t>(),
                              .mask = op.mask.as<float>(),
                              .stride = op.logits.shape.back(),
                              .columns = op.columns,
                              .scale = op.scale_at ? op.scale * *op.scale_at.as<float>() : op.scale,
                              .want_grad = op.want_grad,
                              .first_id = op.first_id};
  const auto loss = kernels_.cross_entropy[storage_of(op.logits.dtype)];
  for_each_range(op.logits.shape.rows(), range_rows(args.stride),
                 [&](int64_t begin, int64_t end) { loss(args, begin, end); });
}

/// Computes the sums of ranges of fixed size, then adds them up in order.
void CpuBackend::run(Stream&, const SumSquares& op) {
  const int64_t n = op.x.elements();
  const auto sum = kernels_.sum_squares[storage_of(op.x.dtype)];
  std::vector<double> partial(static_cast<size_t>((n + kRange - 1) / kRange));
  for_each_range(n, kRange, [&](int64_t begin, int64_t end) {
    partial[static_cast<size_t>(begin / kRange)] = sum(at(op.x, begin), end - begin);
  });
  double total = 0;
  for (const double part : partial) total += part;
  *op.out.as<double>() += total;
}

/// Sums on this thread, in order, since a microbatch has few tokens.
void CpuBackend::run(Stream&, const ScaledSum& op) {
  const float* const x = op.x.as<float>();
  const double scale = op.scale_at ? op.scale * static_cast<double>(*op.scale_at.as<float>()) : op.scale;
  *op.out.as<double>() += scale * std::accumulate(x, x + op.x.elements(), 0.0);
}

void CpuBackend::run(Stream&, const DecideStep& op) {
  decide_step(op.scalars.as<double>(), op.max_norm);
}

void CpuBackend::run(Stream&, const AdamW& op) {
  const double* const scalars = op.scalars.as<double>();
  if (scalars[StepScalar::kSkip] != 0) return;
  const AdamArgs args{.master = op.master.as<float>(),
                      .m = op.m.data,
                      .v = op.v.as<float>(),
                      .grad = op.grad.as<float>(),
                      .value = op.value.data,
                      .rates = adam_rates(scalars, adam_constants(op))};
  const auto update = kernels_.adamw[op.value ? storage_of(op.value.dtype) : kF32][storage_of(op.m.dtype)];
  for_each_range(op.master.elements(), kRange, [&](int64_t begin, int64_t end) { update(args, begin, end); });
}

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend() {
  return std::make_unique<cpu::CpuBackend>();
}

}  // namespace megalith
