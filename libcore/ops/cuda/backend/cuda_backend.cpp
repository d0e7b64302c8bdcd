#include "libcore/ops/cuda/backend/cuda_backend.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "libcore/ops/backend/cuda_workspaces.h"
#include "libcore/ops/backend/late_copies.h"
#include "libcore/ops/backend/recorded_work.h"
#include "libcore/ops/cuda/backend/attention_ops.h"
#include "libcore/ops/cuda/backend/row_ops.h"
#include "libcore/ops/cuda/device_failure.h"
#include "libcore/ops/cuda/gemm.h"
#include "libcore/ops/cuda/graph.h"
#include "libcore/ops/cuda/kernels.h"
#include "libcore/ops/cuda/op_fields.h"
#include "libcore/ops/cuda/queue.h"

namespace megalith::cuda {

void refuse_grid(int64_t blocks) {
  fail(ErrorKind::kUsage, "cuda: a kernel of ", blocks, " blocks, of which a device takes up to ", kMaxGrid,
       "; lower --micro-batch-size or --seq-length");
}

namespace {

// ---- the backend

/// Only the CPU supports weights of 8 bits.
[[noreturn]] void refuse_eight_bits(const char* op) {
  fail(ErrorKind::kUsage, "cuda: ", op,
       " takes no weights of 8 bits; leave out --int8 or --qlora, or give --device cpu");
}

/// Events that can be recorded, so that a step makes none. An event may be recorded again while a stream
/// still waits for its last record.
class EventPool {
 public:
  /// `flags` of cudaEventCreateWithFlags: whether the events have times.
  explicit EventPool(unsigned flags) : flags_(flags) {}
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;
  ~EventPool() {
    for (const cudaEvent_t event : free_) cudaEventDestroy(event);
  }
  cudaEvent_t take() {
    const std::lock_guard lock(mutex_);
    cudaEvent_t event = nullptr;
    if (free_.empty()) {
      require_success(cudaEventCreateWithFlags(&event, flags_), "make an event");
    } else {
      event = free_.back();
      free_.pop_back();
    }
    return event;
  }
  void give_back(cudaEvent_t event) {
    const std::lock_guard lock(mutex_);
    free_.push_back(event);
  }

 private:
  unsigned flags_;
  std::mutex mutex_;  // guards free_
  std::vector<cudaEvent_t> free_;
};

/// Records an event of the pool. It returns to the pool when no copy of the result is left.
Event record_on(const Queue& queue, const std::shared_ptr<EventPool>& pool) {
  const cudaEvent_t taken = pool->take();
  Event event{
      std::shared_ptr<void>(taken, [pool](void* e) { pool->give_back(static_cast<cudaEvent_t>(e)); })};
  require_success(cudaEventRecord(taken, queue.stream()), "record an event");
  return event;
}

cudaEvent_t native(const Event& event) {
  return static_cast<cudaEvent_t>(event.native.get());
}

/// Waits for both events of a stream, which have times, and returns the seconds between them. CUDA gives
/// milliseconds in fp32, which for a quarter of an hour are 60 microseconds apart.
double seconds_between(const Queue& queue, const Event& begin, const Event& end) {
  constexpr double kSecondsPerMillisecond = 1e-3;
  float milliseconds = 0;
  for (const Event& event : {begin, end}) queue.await(native(event));
  require_success(cudaEventElapsedTime(&milliseconds, native(begin), native(end)), "time work");
  return kSecondsPerMillisecond * static_cast<double>(milliseconds);
}

/// A moment on the clocks of the host and of the device.
struct TimeOrigin {
  Event event;
  std::chrono::steady_clock::time_point time;
};

class CudaBackend final : public Backend, public LateCopies, public WorkRecorder {
 public:
  CudaBackend(int device, const LastWaits& waits)
      : device_(device), waits_{.last = waits, .is_idle = [this] { return is_idle(); }} {
    require_device(device);
    enter();
    gemm_ = std::make_unique<GemmRunner>();
  }
  ~CudaBackend() override { cudaSetDevice(device_); }  // the queues must be freed on their device
  const char* name() const override { return "cuda"; }
  Memory allocate(size_t bytes) override;
  Stream make_stream() override;
  Stream make_queue_stream() override { return make_stream(Queue::Priority::kLow); }
  void reserve_scratch(Stream&, size_t bytes) override;
  int device() const { return device_; }
  GemmRunner& products() { return *gemm_; }
  std::unique_ptr<OtherAttention>& other_attention() { return other_attention_; }
  const HostWaits& waits() const { return waits_; }
  void set_watch(DeviceWatch* watch) { waits_.watch = watch; }

  void copy(Stream&, View to, ConstView from) override;
  void to_host(Stream&, void* to, ConstView from) override;
  void from_host(Stream&, View to, const void* from) override;
  void fill(Stream&, View to, double value) override;
  void add(Stream&, View to, ConstView from) override;
  void enqueue(Stream&, std::function<void()> work, std::function<void()> give_up) override;
  Event record(Stream&) override;
  void wait(Stream&, const Event&) override;
  void synchronize(Stream&) override;
  void finish(Stream&, bool drop) noexcept override;
  WorkTime timed(Stream&, const std::function<void()>& work) override;
  AskTime note_time(Stream&) override;
  std::shared_ptr<void> lock_pages(void* memory, size_t bytes) override;
  void copy_out(Stream&, void* to, ConstView from) override;
  void copy_in(Stream& stream, View to, const void* from) override {
    enter(stream).upload_later(to.data, from, to.bytes());
  }
  void await(Stream& stream, const Event& event) override { enter(stream).await(native(event)); }
  Recorded record_work(Stream& stream, const std::function<void()>& work) override {
    return graphs_.capture(enter(stream), work);
  }
  bool repeat(Stream& stream, const Recorded& recorded) override {
    enter(stream);
    return Graphs::launch(stream, recorded);
  }
  Graphs& graphs() { return graphs_; }

  bool fuses_epilogues() const override { return true; }
  void run(Stream&, const Gemm&) override;
  void run(Stream&, const Project&) override;
  void run(Stream&, const QuantizeRows& op) override { refuse_eight_bits(op.kName); }
  void run(Stream&, const WidenRows& op) override { refuse_eight_bits(op.kName); }
  void run(Stream&, const BiasGrad&) override;
  void run(Stream& stream, const AddSlots& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const TakeSlots& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const ScaleBy& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const PutPrefix& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const PrefixGrad& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const LayerNorm& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const LayerNormGrad& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const RmsNorm& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const RmsNormGrad& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const HeadSums& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const HeadsNorm& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const HeadsNormGrad& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const Rope& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const Attention& op) override { run_attention(stream, op); }
  void run(Stream& stream, const AttentionGrad& op) override { run_attention(stream, op); }
  void run(Stream& stream, const CopyKeyValues& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const CachedAttention& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const Activate& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const ActivateGrad& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const SwiGlu& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const SwiGluGrad& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const Dropout& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const Embedding& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const EmbeddingGrad& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const SoftmaxStats& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const SoftmaxRescale& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const CrossEntropy& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const SoftmaxLoss& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const SumSquares& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const ScaledSum& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const DecideStep& op) override { run_on(enter(stream), op); }
  void run(Stream& stream, const AdamW& op) override { run_on(enter(stream), op); }

 private:
  /// Makes this the calling thread's device: CUDA keeps the choice per thread.
  void enter() const { require_success(cudaSetDevice(device_), "choose a device"); }
  Queue& enter(const Stream&) const;
  Stream make_stream(Queue::Priority priority);
  template <class Op>
  void run_attention(const Stream& stream, const Op& op) {
    Queue& queue = enter(stream);
    if (!other_attention_ || !other_attention_->run(queue, op)) run_on(queue, op);
  }
  bool is_idle();
  void multiply_by_nothing(Stream&, const Gemm&);
  /// The origin of all times that note_time() asks for. Waits for the stream when it is first called.
  TimeOrigin time_origin(const Queue&);

  int device_;
  HostWaits waits_;
  std::unique_ptr<GemmRunner> gemm_;
  std::unique_ptr<OtherAttention> other_attention_;  // null: there is none
  // Shared with the events, which may outlive this object.
  std::shared_ptr<EventPool> events_ = std::make_shared<EventPool>(cudaEventDisableTiming);
  std::shared_ptr<EventPool> timers_ = std::make_shared<EventPool>(cudaEventDefault);
  std::mutex mutex_;  // guards queues_ and origin_
  std::vector<std::unique_ptr<Queue>> queues_;
  std::optional<TimeOrigin> origin_;
  Graphs graphs_;
};

Queue& CudaBackend::enter(const Stream& stream) const {
  if (stream.native() == nullptr)
    fail(ErrorKind::kInternal, "cuda: a stream that make_stream() did not make");
  enter();
  return queue_of(stream);
}

// ---- memory, streams

Memory CudaBackend::allocate(size_t bytes) {
  enter();
  Memory memory{{allocate_device(bytes), [](void* block) { cudaFree(block); }}, bytes};
  require_success(cudaMemset(memory.data.get(), 0, bytes), "set memory to zero");
  // Waits until the memory is zeroed, since our streams do not wait for the default stream.
  require_success(cudaStreamSynchronize(nullptr), "wait for memory");
  return memory;
}

Stream CudaBackend::make_stream() {
  return make_stream(Queue::Priority::kNormal);
}

Stream CudaBackend::make_stream(Queue::Priority priority) {
  enter();
  const std::lock_guard lock(mutex_);
  return Stream(*this, queues_.emplace_back(std::make_unique<Queue>(waits_, priority)).get());
}

void CudaBackend::reserve_scratch(Stream& stream, size_t bytes) {
  if (bytes > 0) enter(stream).workspace(bytes);
}

bool CudaBackend::is_idle() {
  const std::lock_guard lock(mutex_);
  return std::all_of(queues_.begin(), queues_.end(), [](const auto& queue) { return queue->is_done(); });
}

void CudaBackend::copy(Stream& stream, View to, ConstView from) {
  const Queue& queue = enter(stream);
  if (to.dtype == from.dtype)
    return require_success(
        cudaMemcpyAsync(to.data, from.data, from.bytes(), cudaMemcpyDeviceToDevice, queue.stream()), "copy");
  launch_copy(queue.stream(), to.data, storage_of(to.dtype), from.data, storage_of(from.dtype),
              to.elements());
}

void CudaBackend::copy_out(Stream& stream, void* to, ConstView from) {
  require_success(
      cudaMemcpyAsync(to, from.data, from.bytes(), cudaMemcpyDeviceToHost, enter(stream).stream()),
      "copy to the host");
}

void CudaBackend::to_host(Stream& stream, void* to, ConstView from) {
  Queue& queue = enter(stream);
  if (queue.is_watched()) queue.wait();  // the driver's own wait for the copy has no limit
  copy_out(stream, to, from);
  queue.wait();
}

std::shared_ptr<void> CudaBackend::lock_pages(void* memory, size_t bytes) {
  enter();
  if (bytes == 0 || cudaHostRegister(memory, bytes, cudaHostRegisterDefault) != cudaSuccess) {
    cudaGetLastError();  // clears the error, which the next launch would report otherwise
    return nullptr;
  }
  return {memory, [](void* locked) { cudaHostUnregister(locked); }};
}

void CudaBackend::from_host(Stream& stream, View to, const void* from) {
  enter(stream).upload(to.data, from, to.bytes());
}

void CudaBackend::fill(Stream& stream, View to, double value) {
  launch_fill(enter(stream).stream(), to.data, size_of(to.dtype), element_bits(to.dtype, value),
              to.elements());
}

void CudaBackend::add(Stream& stream, View to, ConstView from) {
  launch_add(enter(stream).stream(), to.data, storage_of(to.dtype), from.data, storage_of(from.dtype),
             to.elements());
}

/// With `drop`, drops only what waits for other ranks.
void CudaBackend::finish(Stream& stream, bool drop) noexcept {
  queue_of(stream).finish(drop);
}

void CudaBackend::enqueue(Stream& stream, std::function<void()> work, std::function<void()>) {
  enter(stream).enqueue(std::move(work));
}

Event CudaBackend::record(Stream& stream) {
  return record_on(enter(stream), events_);
}

void CudaBackend::wait(Stream& stream, const Event& event) {
  const Queue& queue = enter(stream);
  queue.rethrow_error();
  if (event.native == nullptr) return;  // an empty event: nothing to wait for
  require_success(cudaStreamWaitEvent(queue.stream(), native(event), 0), "wait for an event");
}

void CudaBackend::synchronize(Stream& stream) {
  enter(stream).wait();
}

WorkTime CudaBackend::timed(Stream& stream, const std::function<void()>& work) {
  const Queue& queue = enter(stream);
  const Event begin = record_on(queue, timers_);
  work();
  return {
      .ask = [&queue, begin, end = record_on(queue, timers_)] { return seconds_between(queue, begin, end); }};
}

TimeOrigin CudaBackend::time_origin(const Queue& queue) {
  const std::lock_guard lock(mutex_);
  if (!origin_) {
    origin_ = {.event = record_on(queue, timers_), .time = {}};
    queue.await(native(origin_->event));
    origin_->time = std::chrono::steady_clock::now();
  }
  return *origin_;
}

AskTime CudaBackend::note_time(Stream& stream) {
  const Queue& queue = enter(stream);
  const TimeOrigin origin = time_origin(queue);
  return [&queue, origin, event = record_on(queue, timers_)] {
    const std::chrono::duration<double> after(seconds_between(queue, origin.event, event));
    return origin.time + std::chrono::duration_cast<std::chrono::steady_clock::duration>(after);
  };
}

// ---- products

void CudaBackend::run(Stream& stream, const Gemm& op) {
  Queue& queue = enter(stream);
  const bool empty = op.c.elements() == 0 || op.k() == 0;
  if (!empty && gemm_->run(queue, op)) return;
  if (op.epilogue() != Epilogue::kNone)
    return for_each_part(op, [&](const auto& part) { this->run(stream, part); });
  multiply_by_nothing(stream, op);
}

/// A product without elements or with k = 0.
void CudaBackend::multiply_by_nothing(Stream& stream, const Gemm& op) {
  const Queue& queue = enter(stream);
  if (op.c.elements() == 0 || op.accumulate) return;
  if (!op.bias) return fill(stream, op.c, 0);
  launch_row_bias(queue.stream(), row_bias(op, false));
}

void CudaBackend::run(Stream& stream, const Project& op) {
  if (op.w.dtype == DType::kI8) refuse_eight_bits(op.kName);
  launch_project(enter(stream).stream(), storage_of(op.w.dtype),
                 {.y = op.y.as<float>(),
                  .x = op.x.as<float>(),
                  .w = op.w.data,
                  .bias = op.bias.as<float>(),
                  .rows = op.n(),
                  .out = op.out(),
                  .in = op.in()});
}

void CudaBackend::run(Stream& stream, const BiasGrad& op) {
  Queue& queue = enter(stream);
  launch_column_sums(queue.stream(), storage_of(op.dy.dtype),
                     {.plain = op.dbias.as<float>(),
                      .normed = nullptr,
                      .dy = op.dy.data,
                      .x = nullptr,
                      .mean = nullptr,
                      .rstd = nullptr,
                      .rows = op.dy.shape.rows(),
                      .columns = op.dy.shape.back()},
                     queue.workspace(workspace_of(op)));
}

}  // namespace

std::unique_ptr<Backend> make_backend(int device, const LastWaits& waits) {
  return std::make_unique<CudaBackend>(device, waits);
}

int device_of(const Backend& backend) {
  return static_cast<const CudaBackend&>(backend).device();
}

GemmRunner& products_of(Backend& backend) {
  return static_cast<CudaBackend&>(backend).products();
}

std::unique_ptr<OtherAttention>& other_attention(Backend& backend) {
  return static_cast<CudaBackend&>(backend).other_attention();
}

Graphs& graphs_of(Backend& backend) {
  return static_cast<CudaBackend&>(backend).graphs();
}

const HostWaits& waits_of(const Backend& backend) {
  return static_cast<const CudaBackend&>(backend).waits();
}

void set_watch(Backend& backend, DeviceWatch* watch) {
  static_cast<CudaBackend&>(backend).set_watch(watch);
}

int count_devices() {
  int devices = 0;
  require_device(0);
  require_success(cudaGetDeviceCount(&devices), "count devices");
  return devices;
}

std::string address_of(int device) {
  char address[32] = {};
  require_device(device);
  require_success(cudaDeviceGetPCIBusId(address, sizeof address, device), "ask for a device's address");
  return address;
}

DeviceMemory memory_of(int device) {
  // For what is not allocated here: the code of kernels, which the driver loads at their first call, and the
  // rest of each block's last 2 MiB. Neither was measured.
  constexpr size_t kReserve = size_t{32} << 20;
  size_t left = 0, all = 0;
  require_device(device);
  require_success(cudaSetDevice(device), "choose a device");
  require_success(cudaMemGetInfo(&left, &all), "ask for free memory");
  return {.left = left > kReserve ? left - kReserve : 0, .all = all};
}

DeviceFacts facts_of(int device) {
  require_device(device);
  cudaDeviceProp properties{};
  require_success(cudaGetDeviceProperties(&properties, device), "ask for a device's properties");
  DeviceFacts facts{.major = properties.major,
                    .minor = properties.minor,
                    .multiprocessors = properties.multiProcessorCount,
                    .memory = properties.totalGlobalMem,
                    .l2 = static_cast<size_t>(properties.l2CacheSize),
                    .ecc = properties.ECCEnabled != 0,
                    .cublas = cublas_version()};
  std::copy(std::begin(properties.name), std::end(properties.name) - 1, facts.name);
  const auto megahertz = [device](cudaDeviceAttr attribute) {
    int kilohertz = 0;
    require_success(cudaDeviceGetAttribute(&kilohertz, attribute, device), "ask for a device's clock");
    return kilohertz / 1000;
  };
  facts.clock_mhz = megahertz(cudaDevAttrClockRate);
  facts.memory_clock_mhz = megahertz(cudaDevAttrMemoryClockRate);
  require_success(cudaDriverGetVersion(&facts.driver), "ask for the driver's version");
  require_success(cudaRuntimeGetVersion(&facts.runtime), "ask for the runtime's version");
  return facts;
}

}  // namespace megalith::cuda
